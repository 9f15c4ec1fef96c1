/* y = x W^T on the tape. The backward pass skips zero rows. */
#include "autograd/operations.h"

#include <string.h>

#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"

static int64_t rows_of(const Tensor *x)
{
    return tensor_count(x) / shape_last(x->shape);
}

/* The number of outputs: the product of all dimensions of the weight except the last. */
static int64_t outputs_of(const Tensor *weight)
{
    int64_t outputs = 1;
    for (int i = 0; i < weight->shape.rank - 1; i++)
        outputs *= weight->shape.size[i];
    return outputs;
}

/* The rows of dy that are not zero. Zero rows contribute nothing. They belong to padding or, in the
 * last block of a classifier, to any token but the first. */
typedef struct RowsInUse {
    int64_t rows, count;  /* number of rows of dy; number of rows in use */
    const int32_t *index; /* indices of the rows in use, if some are skipped */
    int32_t *place;       /* then: for each row, its place among those in use, or NO_ID */
} RowsInUse;

static RowsInUse rows_in_use(const Tensor *dy, int64_t columns)
{
    RowsInUse use = {.rows = tensor_count(dy) / (columns ? columns : 1)};
    use.count = use.rows;
    if (!backend_looks_for_zeros())
        return use;
    Tensor *index = tape_tensor(dy->tape, INT32, SHAPE(use.rows), whole());
    use.count = kernel_rows_in_use(use.rows, columns, reals_or_halves(dy), ints(index));
    if (use.count == use.rows)
        return use;
    use.index = ints(index);
    use.place = ints(tape_tensor(dy->tape, INT32, SHAPE(use.rows), whole()));
    for (int64_t r = 0, taken = 0; r < use.rows; r++)
        use.place[r] =
            taken < use.count && use.index[taken] == r ? (int32_t)taken++ : (int32_t)NO_ID;
    return use;
}

static Tensor *rows_taken(const RowsInUse *use, Tensor *x, int64_t columns, Tape *tape)
{
    if (!use->index)
        return x;
    Tensor *rows = tape_tensor(tape, x->dtype, SHAPE(use->count, columns), whole());
    kernel_lookup_forward(use->count, columns, use->index, reals_or_halves(x),
                          reals_or_halves(rows));
    return rows;
}

/* x as a layer multiplies it: rounded, if the layer multiplies in 16 bits. */
static Tensor *factor(Tape *tape, Tensor *x, bool in_16_bits)
{
    return in_16_bits ? rounded_copy(tape, x) : ready(x);
}

/* Where the gradient of x is written; if *accumulate, it is added. */
static Tensor *room_for(Tensor *x, bool in_16_bits, bool *accumulate)
{
    if (!in_16_bits || x->gradient || !takes_16_bits(x))
        return gradient_room(x, accumulate);
    *accumulate = false;
    gradient_add(x, tape_tensor(x->tape, HALF, x->shape, x->placement));
    return x->gradient;
}

static void input_gradient(const RowsInUse *use, int64_t in, int64_t out, const Tensor *dy,
                           const Tensor *weight, Tensor *x, Tape *tape)
{
    bool accumulate;
    Tensor *dx = room_for(x, use->count > 0 && dy->dtype == HALF, &accumulate);
    if (!dx)
        return;
    if (use->count == 0) { /* also without outputs: the last rank may hold no row of a vocabulary */
        if (!accumulate)
            kernel_vector_fill(tensor_count(dx), 0, reals(dx));
        return;
    }
    Tensor *rows = use->index ? tape_tensor(tape, dx->dtype, SHAPE(use->count, in), whole()) : dx;
    kernel_linear_backward_input(use->count, in, out, reals_or_halves(dy), reals_or_halves(weight),
                                 reals_or_halves(rows), accumulate && !use->index);
    if (!use->index)
        return;
    if (accumulate)
        kernel_lookup_backward(use->count, in, use->index, reals(rows), reals(dx));
    else
        kernel_lookup_forward(use->rows, in, use->place, reals_or_halves(rows),
                              reals_or_halves(dx));
    tape_release_value(rows);
}

static void weight_gradient(const RowsInUse *use, int64_t in, int64_t out, const Tensor *dy,
                            const Tensor *x, Tensor *dw, bool accumulate)
{
    if (use->count > 0)
        kernel_linear_backward_weight(use->count, in, out, reals_or_halves(dy), reals_or_halves(x),
                                      reals(dw), accumulate);
    else if (!accumulate)
        kernel_vector_fill(tensor_count(dw), 0, reals(dw));
}

static void linear_backward(Node *node, Tensor *dy)
{
    Tensor *x = node->input[0], *weight = node->input[1], *bias = node->input[2];
    int64_t in = shape_last(weight->shape), out = outputs_of(weight);
    const bool in_16_bits = node->saved[1]->dtype == HALF;
    Tensor *multiplied = factor(dy->tape, node->saved[0],
                                in_16_bits); /* first: a recomputation is a span of its own */
    RowsInUse use = rows_in_use(dy, out);
    Tape *tape = dy->tape;
    Tensor *rows = rows_taken(&use, dy, out, tape);
    const Tensor *left = factor(tape, rows, in_16_bits);
    bool accumulate;
    input_gradient(&use, in, out, left, node->saved[1], x, tape);
    Tensor *dw = gradient_room(weight, &accumulate);
    if (dw)
        weight_gradient(&use, in, out, left, rows_taken(&use, multiplied, in, tape), dw,
                        accumulate);
    Tensor *db = bias ? gradient_sum(bias) : NULL;
    if (db)
        kernel_linear_backward_bias(use.count, out, reals_or_halves(rows), reals(db));
}

static bool is_split_by_inputs(const Tensor *weight)
{
    return weight->placement.kind == SHARD && weight->placement.dim == weight->shape.rank - 1;
}

const char *const linear_takes_shard = N_(
    "this weight is split along its inputs, and x is not: split x likewise, or the weight along its "
    "outputs");

static const char *what_does_not_fit(const Tensor *x, const Tensor *weight)
{
    bool x_cut = x->placement.kind == SHARD && x->placement.dim == x->shape.rank - 1;
    bool inputs_cut = is_split_by_inputs(weight);
    if (x->parameter && !weight->parameter)
        return N_("the arguments are swapped: linear(x, weight)");
    if (inputs_cut && !x_cut)
        return linear_takes_shard;
    if (x_cut && !inputs_cut)
        return N_("x is split along its last dimension: split the weight along its inputs too, "
                  "shard(1)");
    return N_("the last dimension of x must be the second one of the weight, [out,in]");
}

/* x's dimensions without the last one, then those of the outputs. */
static Shape shape_of_outputs(Shape x, const Tensor *weight)
{
    x.rank--;
    for (int i = 0; i < weight->shape.rank - 1; i++)
        x.size[x.rank++] = weight->shape.size[i];
    return x;
}

/* Has all_gather joined shards that this weight takes as they are? */
static bool is_joined(const Tensor *x, const Tensor *weight)
{
    return is_split_by_inputs(weight) && x->producer && !strcmp(x->producer->name, "all_gather");
}

static void check_linear(const Tensor *x, const Tensor *weight, const Tensor *bias)
{
    enum { MOST = sizeof x->shape.size / sizeof *x->shape.size };
    if (x->dtype == INT32 || weight->shape.rank < 2 || x->shape.rank < 1 ||
        x->shape.rank + weight->shape.rank - 2 > MOST ||
        shape_last(x->shape) != shape_last(weight->shape) || (x->parameter && !weight->parameter))
        misuse(what_does_not_fit(x, weight),
               is_joined(x, weight)
                   ? N_("linear: x %s comes from all_gather, but the weight %s takes a shard of it")
                   : N_("linear: x %s does not fit the weight %s"),
               TENSOR_TEXT(x), TENSOR_TEXT(weight));
    if (bias && !shape_equal(bias->shape, shape_of_outputs(SHAPE(1), weight)))
        misuse("a bias has one number for each output",
               "linear_with_bias: the bias %s does not fit the weight %s", TENSOR_TEXT(bias),
               TENSOR_TEXT(weight));
    if (bias && is_split_by_inputs(weight))
        misuse(
            "add the bias after the sum, on every rank: a rank that does not add it gets no gradient for it",
            "linear_with_bias: the weight is split along its inputs, so the result is one rank's "
            "term of a sum, and the bias belongs after that sum");
}

/* Results of layers are in 16 bits. Logits are not: those of a table. */
static bool is_read_in_16_bits(const Tensor *weight)
{
    const Parameter *p = weight->parameter;
    return p && !p->is_table && p->twin < 0 && p->shape.rank == 2;
}

Tensor *linear_with_bias(Tensor *x, Tensor *weight, Tensor *bias)
{
    must_not_be_ids("linear", x);
    must_not_be_ids("linear", weight);
    check_linear(x, weight, bias);
    Tape *tape = tape_of("linear", x, weight);
    must_be_cut_evenly(tape, "linear", weight);
    Placement placement = place_result(tape, PLACE_LINEAR, "linear", x, weight, LAST);
    int64_t in = shape_last(weight->shape), out = outputs_of(weight);
    if (weight->parameter)
        weight->parameter->is_multiplied = true;
    const int64_t rows = rows_of(x);
    const bool in_16_bits = is_in_16_bits(rows * in * out);
    Tensor *y = tape_tensor(tape, in_16_bits && is_read_in_16_bits(weight) ? HALF : REAL,
                            shape_of_outputs(x->shape, weight), placement);
    if (weight->placement.kind == SHARD && weight->placement.dim == 0)
        y->undivided = weight->undivided;
    Tensor *left = factor(tape, x, in_16_bits), *right = factor(tape, weight, in_16_bits);
    const real *shift = bias ? reals(ready(bias)) : NULL;
    kernel_linear_forward(rows, in, out, reals_or_halves(left), reals_or_halves(right), shift,
                          reals_or_halves(y));
    Node *node =
        tape_operation(tape, "linear", linear_backward, y, 3, (Tensor *[]){x, weight, bias});
    if (node) {
        node_keep_or_compute(node, 0, can_be_computed(x) ? x : left);
        node_keep(node, 1, right);
        node->takes_16_bits = true;
    }
    return y;
}

Tensor *linear(Tensor *x, Tensor *weight)
{
    return linear_with_bias(x, weight, NULL);
}
