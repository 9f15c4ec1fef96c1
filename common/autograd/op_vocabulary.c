/* The steps of a cross-entropy whose logits are split over the ranks, along the vocabulary. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "backend/host_view.h"
#include "base/run.h"

static Shape without_last(Shape shape)
{
    shape.rank--;
    return shape;
}

static int64_t rows_of(const Tensor *x)
{
    return shape_count(without_last(x->shape));
}

static void must_have_columns(const char *function, const Tensor *x)
{
    must_not_be_ids(function, x);
    if (x->shape.rank < 1)
        misuse("it takes logits [B,S,V/tp]", "%s: x %s has no rows", function, TENSOR_TEXT(x));
}

static void must_be_of_rows(const char *function, const Tensor *x, const Tensor *most)
{
    must_not_be_ids(function, most);
    if (!shape_equal(most->shape, without_last(x->shape)))
        misuse("pass what group_all_max returns for row_max(x): a number for each row",
               "%s: the maxima %s do not fit x %s", function, TENSOR_TEXT(most), TENSOR_TEXT(x));
}

static void must_be_ids(const char *function, const Tensor *ids)
{
    if (!ids || ids->dtype != INT32)
        misuse("it takes ids [B,S]", "%s: %s does not hold ids", function,
               ids ? TENSOR_TEXT(ids) : "NULL");
}

/* ---- along rows ------------------------------------------------------------------------------------------ */

Tensor *row_max(Tensor *x)
{
    must_have_columns("row_max", x);
    Tape *tape = tape_of("row_max", x, NULL);
    const Placement placement = place_result(tape, PLACE_ROW_MAX, "row_max", x, NULL, LAST);
    Tensor *most = tape_tensor(tape, REAL, without_last(x->shape), placement);
    kernel_row_max(rows_of(x), shape_last(x->shape), reals(ready(x)), reals(most));
    return most;
}

static void row_sum_exp_gradient(Node *node, Tensor *dsums)
{
    const Tensor *x = node->saved[0];
    bool accumulate;
    Tensor *dx = gradient_in_place(node->input[0], x, &accumulate);
    kernel_row_sum_exp_backward(rows_of(x), shape_last(x->shape), reals(dsums), reals(x),
                                reals(node->saved[1]), reals(dx), accumulate);
}

Tensor *row_sum_exp(Tensor *x, Tensor *most)
{
    must_have_columns("row_sum_exp", x);
    must_be_of_rows("row_sum_exp", x, most);
    Tape *tape = tape_of("row_sum_exp", x, most);
    Tensor *sums = tape_tensor(tape, REAL, most->shape,
                               place_result(tape, PLACE_ROW_SUM, "row_sum_exp", x, NULL, LAST));
    kernel_row_sum_exp_forward(rows_of(x), shape_last(x->shape), reals(ready(x)),
                               reals(ready(most)), reals(sums));
    Node *node =
        tape_operation(tape, "row_sum_exp", row_sum_exp_gradient, sums, 2, (Tensor *[]){x, most});
    if (node) {
        node_keep(node, 0, x);
        node_keep(node, 1, most);
    }
    return sums;
}

static void row_pick_gradient(Node *node, Tensor *dy)
{
    Tensor *x = node->input[0], *dx = gradient_sum(x);
    kernel_row_pick_backward(rows_of(x), shape_last(x->shape), reals(dy), ints(node->saved[0]),
                             reals(dx));
}

static void check_columns(const Tensor *x, Tensor *ids)
{
    const int64_t rows = rows_of(x), columns = shape_last(x->shape);
    must_be_ids("row_pick", ids);
    if (!shape_equal(ids->shape, without_last(x->shape)))
        misuse("ids must have one id for each row of x", "row_pick: the ids %s do not fit x %s",
               TENSOR_TEXT(ids), TENSOR_TEXT(x));
    for (int64_t r = 0; r < rows; r++) {
        const int32_t id = ints(ready(ids))[r];
        if (id != NO_ID && (id < 0 || id >= columns))
            misuse("this rank holds some columns only: pass own_ids(ids, x)",
                   "row_pick: id %d, but x %s has %lld columns here", id, TENSOR_TEXT(x),
                   (long long)columns);
    }
}

Tensor *row_pick(Tensor *x, Tensor *most, Tensor *ids)
{
    must_have_columns("row_pick", x);
    must_be_of_rows("row_pick", x, most);
    check_columns(x, ids);
    Tape *tape = tape_of("row_pick", x, most);
    Tensor *y = tape_tensor(tape, REAL, most->shape,
                            place_result(tape, PLACE_ROW_SUM, "row_pick", x, NULL, LAST));
    kernel_row_pick_forward(rows_of(x), shape_last(x->shape), reals(ready(x)), reals(ready(most)),
                            ints(ids), reals(y));
    Node *node =
        tape_operation(tape, "row_pick", row_pick_gradient, y, 3, (Tensor *[]){x, most, ids});
    if (node) {
        node_keep(node, 0, ids);
        node_run_last(node); /* so row_sum_exp can write its gradient over x */
    }
    return y;
}

Tensor *own_ids(Tensor *ids, const Tensor *logits)
{
    must_have_columns("own_ids", logits);
    must_be_ids("own_ids", ids);
    const Tape *tape = tape_of("own_ids", ids, logits);
    Range held = {0, shape_last(logits->shape)}, all = held;
    const bool columns = is_split(tape) && may_be_columns(logits);
    if (columns) {
        if (!logits->undivided)
            misuse("pass what linear(x, table) returned, with a table split by rows",
                   "own_ids: it is not known which columns of the vocabulary %s holds",
                   TENSOR_TEXT(logits));
        all.end = logits->undivided;
        held = chunk(all.end, tape->mesh->tp_rank, tape->mesh->tp_degree);
    }
    for (int64_t i = 0, count = tensor_count(ids); i < count; i++) {
        const int32_t id = ints(ready(ids))[i];
        if (id != NO_ID && (id < 0 || id >= all.end))
            misuse(columns || !is_split(tape)
                       ? "ids are numbered from 0; NO_ID stands for none"
                       : "pass what linear(x, table) returned, with a table split by rows",
                   "own_ids: id %d, but the logits %s have %lld columns", id, TENSOR_TEXT(logits),
                   (long long)all.end);
    }
    return ids_between(ids, (int)held.begin, (int)held.end);
}

/* ---- element by element ---------------------------------------------------------------------------------- */

static void logarithm_gradient(Node *node, Tensor *dy)
{
    const Tensor *x = node->saved[0];
    Tensor *dx = gradient_over(dy, x->placement);
    kernel_logarithm_backward(tensor_count(x), reals(dy), reals(x), reals(dx));
    gradient_add(node->input[0], dx);
}

Tensor *logarithm(Tensor *x)
{
    must_not_be_ids("logarithm", x);
    Tape *tape = tape_of("logarithm", x, NULL);
    Tensor *y = tape_tensor(tape, REAL, x->shape,
                            place_result(tape, PLACE_NOT_PARTIAL, "logarithm", x, NULL, LAST));
    kernel_logarithm_forward(tensor_count(x), reals(ready(x)), reals(y));
    Node *node = tape_operation(tape, "logarithm", logarithm_gradient, y, 1, &x);
    if (node)
        node_keep(node, 0, x);
    return y;
}

static void subtract_gradient(Node *node, Tensor *dz)
{
    Tensor *y = node->input[1];
    gradient_add(node->input[0], dz);
    if (!y->needs_gradient)
        return;
    Tensor *dy = tape_tensor(dz->tape, REAL, dz->shape, dz->placement);
    kernel_vector_copy(tensor_count(dy), reals(dz), reals(dy));
    kernel_vector_scale(tensor_count(dy), -1, reals(dy));
    gradient_add(y, dy);
}

Tensor *subtract(Tensor *x, Tensor *y)
{
    must_not_be_ids("subtract", x);
    must_not_be_ids("subtract", y);
    if (!shape_equal(x->shape, y->shape))
        misuse("both must have the same shape", "subtract: %s and %s", TENSOR_TEXT(x),
               TENSOR_TEXT(y));
    Tape *tape = tape_of("subtract", x, y);
    Tensor *z =
        tape_tensor(tape, REAL, x->shape, place_result(tape, PLACE_ALIKE, "subtract", x, y, LAST));
    kernel_vector_subtract(tensor_count(x), reals(ready(x)), reals(ready(y)), reals(z));
    tape_operation(tape, "subtract", subtract_gradient, z, 2, (Tensor *[]){x, y});
    return z;
}

/* ---- the mean -------------------------------------------------------------------------------------------- */

/* The divisor of the sum of losses: tape->batch.tokens or, if that is 0, the number of targets. At
 * least 1, so the loss of a batch without targets is 0. */
static double divisor(const Tape *tape, const Tensor *targets)
{
    double tokens = tape->batch.tokens;
    for (int64_t i = 0; !(tape->batch.tokens > 0) && i < tensor_count(targets); i++)
        tokens += ints(targets)[i] != NO_ID;
    return tokens > 0 ? tokens : 1;
}

static void mean_gradient(Node *node, Tensor *dy)
{
    const Tensor *targets = node->saved[0];
    Tensor *dx = tape_host_tensor(dy->tape, REAL, targets->shape, node->input[0]->placement);
    real each;
    backend_read(&each, reals(dy), sizeof each);
    each = (real)((double)each / divisor(dy->tape, targets));
    for (int64_t i = 0; i < tensor_count(dx); i++)
        reals(dx)[i] = ints(targets)[i] == NO_ID ? 0 : each;
    gradient_add(node->input[0], dx);
}

Tensor *mean_over_tokens(Tensor *x, Tensor *targets)
{
    must_not_be_ids("mean_over_tokens", x);
    must_be_ids("mean_over_tokens", targets);
    if (!shape_equal(x->shape, targets->shape))
        misuse("x [B,S] is a loss for each target [B,S]",
               "mean_over_tokens: x %s does not fit the targets %s", TENSOR_TEXT(x),
               TENSOR_TEXT(targets));
    Tape *tape = tape_of("mean_over_tokens", x, targets);
    Tensor *mean =
        tape_host_tensor(tape, REAL, SHAPE(1),
                         place_result(tape, PLACE_ALL_OF_X, "mean_over_tokens", x, NULL, LAST));
    const HostView view = host_view_read(reals(ready(x)), tensor_count(x));
    double sum = 0;
    for (int64_t i = 0; i < view.count; i++)
        sum += ints(ready(targets))[i] == NO_ID ? 0 : (double)view.numbers[i];
    host_view_end(&view);
    reals(mean)[0] = (real)(sum / divisor(tape, targets));
    Node *node =
        tape_operation(tape, "mean_over_tokens", mean_gradient, mean, 2, (Tensor *[]){x, targets});
    if (node)
        node_keep(node, 0, targets);
    return mean;
}
