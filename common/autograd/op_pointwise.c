/* Element-wise operations: gelu, dropout, add, scale; and first_token. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"

/* ---- gelu, exact or by tanh: deferred until it is read, so dropout can do both in one pass ----------- */

static void gelu_gradient(Node *node, Tensor *dy)
{
    Tensor *x = node->saved[0];
    dy = in_type_of(x, dy);
    Tensor *dx = gradient_over(dy, x->placement);
    (node->with.by_tanh ? kernel_gelu_tanh_backward : kernel_gelu_backward)(
        tensor_count(x), reals_or_halves(dy), reals_or_halves(x), reals_or_halves(dx));
    gradient_add(node->input[0], dx);
}

static void write_gelu(bool by_tanh, const Tensor *x, Tensor *y)
{
    tape_allocate(y);
    (by_tanh ? kernel_gelu_tanh_forward : kernel_gelu_forward)(tensor_count(x), reals_or_halves(x),
                                                               reals_or_halves(y));
}

static void gelu_compute(Node *node)
{
    node->output->dtype = node->saved[0]->dtype;
    write_gelu(node->with.by_tanh, node->saved[0], node->output);
}

static Tensor *gelu_by(const char *function, bool by_tanh, Tensor *x)
{
    must_not_be_ids(function, x);
    Tape *tape = tape_of(function, x, NULL);
    Tensor *y =
        tape_later(tape, x->shape, place_result(tape, PLACE_NOT_PARTIAL, function, x, NULL, LAST));
    y->dtype = available(x)->dtype;
    Node *node = tape_operation(tape, function, gelu_gradient, y, 1, &x);
    if (node) {
        node_keep(node, 0, x);
        node->with.by_tanh = by_tanh;
        node->compute = gelu_compute;
        node->takes_16_bits = true;
    } else {
        write_gelu(by_tanh, x, y);
    }
    return y;
}

Tensor *gelu(Tensor *x)
{
    return gelu_by("gelu", false, x);
}

Tensor *gelu_tanh(Tensor *x)
{
    return gelu_by("gelu_tanh", true, x);
}

static bool is_gelu_not_computed(const Tensor *x)
{
    return !x->buffer && x->producer && x->producer->compute == gelu_compute &&
           !x->producer->with.by_tanh;
}

/* ---- dropout ------------------------------------------------------------------------------------------- */

/* saved[0] holds the mask, one bit per element: drawn once, read by each pass. saved[1] is the
 * input of GELU, if one pass does both. */

static const uint32_t *kept_of(const Node *node)
{
    return (const uint32_t *)ints(node->saved[0]);
}

static void dropout_gradient(Node *node, Tensor *dy)
{
    int64_t columns = shape_last(dy->shape), rows = tensor_count(dy) / columns;
    Tensor *x = node->saved[1];
    dy = in_type_of(x ? x : node->input[0], dy);
    Tensor *dx = gradient_over(dy, dy->placement);
    kernel_dropout(x ? GELU_DROPOUT_BACKWARD : DROPOUT, rows, columns, node->with.probability,
                   kept_of(node), reals_or_halves(dy), reals_or_halves(x ? x : dy),
                   reals_or_halves(dx));
    gradient_add(node->input[0], dx);
}

static void gelu_dropout_compute(Node *node)
{
    Tensor *y = node->output;
    int64_t columns = shape_last(y->shape), rows = tensor_count(y) / columns;
    y->dtype = node->saved[1]->dtype;
    tape_allocate(y);
    kernel_dropout(GELU_DROPOUT, rows, columns, node->with.probability, kept_of(node), (Numbers){0},
                   reals_or_halves(node->saved[1]), reals_or_halves(y));
}

static DropoutMask mask_of(const Tape *tape, const Tensor *x, const char *name, double probability)
{
    const TapeBatch *batch = &tape->batch;
    const Mesh *mesh = tape->mesh;
    int64_t columns = shape_last(x->shape);
    const int split = is_split(tape) && x->placement.kind == SHARD ? x->placement.dim : -1;
    const int64_t positions = x->shape.rank == 3 ? x->shape.size[1] : 1;
    const uint64_t draw =
        (uint64_t)batch->step ^ (uint64_t)batch->draw << 32 ^ (uint64_t)batch->draw >> 32;
    return (DropoutMask){.key = philox_key(batch->seed, name, draw),
                         .probability = probability,
                         .samples = batch->samples,
                         .positions = positions,
                         .column_begin = split == x->shape.rank - 1 ? mesh->tp_rank * columns : 0,
                         .position_begin =
                             split == 1 && x->shape.rank == 3 ? mesh->tp_rank * positions : 0};
}

Tensor *dropout_with(Tensor *x, const char *name, double probability)
{
    must_not_be_ids("dropout", x);
    Tape *tape = tape_of("dropout", x, NULL);
    if (!tape->batch.training || probability == 0)
        return x;
    if (x->shape.rank < 2 || x->shape.rank > 3 || x->shape.size[0] > tape->batch.count)
        misuse("the first dimension runs over the samples of the batch",
               "dropout takes [B,..,H] of two or three dimensions, not %s", TENSOR_TEXT(x));
    DropoutMask mask = mask_of(tape, x, name, probability);
    int64_t columns = shape_last(x->shape), rows = columns ? tensor_count(x) / columns : 0;
    Tensor *kept = tape_tensor(tape, INT32, SHAPE(rows, dropout_words(columns)), whole());
    uint32_t *bits = (uint32_t *)ints(kept);
    kernel_dropout_draw(rows, columns, &mask, bits);
    bool fused = is_gelu_not_computed(x);
    Tensor *from = fused ? x->producer->input[0] : x,
           *read = fused ? x->producer->saved[0] : available(x);
    Tensor *y = tape_tensor(tape, read->dtype, x->shape, x->placement);
    kernel_dropout(fused ? GELU_DROPOUT : DROPOUT, rows, columns, probability, bits, (Numbers){0},
                   reals_or_halves(read), reals_or_halves(y));
    tape->next =
        (Attributes){{{N_("name"), .text = name}, {N_("probability"), .number = probability}}};
    Node *node = tape_operation(tape, fused ? N_("gelu and dropout") : "dropout", dropout_gradient,
                                y, 1, &from);
    if (node) {
        node->with.probability = probability;
        node->takes_16_bits = true;
        node_keep(node, 0, kept);
    }
    if (node && fused) {
        node_keep(node, 1, x->producer->saved[0]);
        node->compute = gelu_dropout_compute;
    }
    return y;
}

/* ---- add, first_token, scale --------------------------------------------------------------------------- */

static void add_gradient(Node *node, Tensor *dy)
{
    gradient_add(node->input[0], dy);
    gradient_add(node->input[1], dy);
}

Tensor *add(Tensor *x, Tensor *y)
{
    must_not_be_ids("add", x);
    must_not_be_ids("add", y);
    if (!shape_equal(x->shape, y->shape))
        misuse("both must have the same shape", "add: %s and %s", TENSOR_TEXT(x), TENSOR_TEXT(y));
    Tape *tape = tape_of("add", x, y);
    Tensor *z =
        tape_tensor(tape, REAL, x->shape, place_result(tape, PLACE_ALIKE, "add", x, y, LAST));
    const bool y_is_narrow = available(y)->dtype == HALF; /* the kernel takes one in 16 bits */
    const real *full = reals(ready(y_is_narrow ? x : y));
    kernel_vector_add(tensor_count(x), full, reals_or_halves(available(y_is_narrow ? y : x)),
                      reals(z));
    tape_operation(tape, "add", add_gradient, z, 2, (Tensor *[]){x, y});
    return z;
}

static void first_token_gradient(Node *node, Tensor *dy)
{
    Tensor *x = node->input[0];
    int64_t batch = x->shape.size[0], positions = x->shape.size[1], columns = x->shape.size[2];
    Tensor *dx = tape_tensor(dy->tape, REAL, x->shape, dy->placement);
    kernel_vector_fill(tensor_count(dx), 0, reals(dx));
    kernel_copy_rows(batch, columns, reals(dy), columns, reals(dx), positions * columns);
    gradient_add(x, dx);
}

Tensor *first_token(Tensor *x)
{
    must_not_be_ids("first_token", x);
    if (x->shape.rank != 3)
        misuse("it takes [B,S,H]", "first_token: x %s", TENSOR_TEXT(x));
    Tape *tape = tape_of("first_token", x, NULL);
    int64_t batch = x->shape.size[0], positions = x->shape.size[1], columns = x->shape.size[2];
    Tensor *y = tape_tensor(tape, REAL, SHAPE(batch, columns),
                            place_result(tape, PLACE_FIRST_TOKEN, "first_token", x, NULL, 1));
    kernel_copy_rows(batch, columns, reals(ready(x)), positions * columns, reals(y), columns);
    tape_operation(tape, "first_token", first_token_gradient, y, 1, &x);
    return y;
}

void scale(Tensor *x, float factor)
{
    must_exist("scale", x);
    begin_change(x);
    if (factor != 1) /* for example, the mean over one replica */
        kernel_vector_scale(tensor_count(x), (double)factor, reals(x));
}
