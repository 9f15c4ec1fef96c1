/* Layer norm and RMS norm on the tape. Where products are in 16 bits, a norm is deferred until it is
 * read, so a product gets numbers in 16 bits, and any other operation reals. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

/* The kernels write every gradient. Returns scratch memory for a gradient that is not needed. */
static Tensor *or_unread(Tensor *room, const Tensor *x, Tape *tape)
{
    return room ? room : tape_tensor(tape, REAL, x->shape, whole());
}

static void must_fit(const char *function, const Tensor *x, const Tensor *weight)
{
    if (shape_last(x->shape) != weight->shape.size[0])
        misuse("it normalises the last dimension", "%s: x %s does not fit the weight %s", function,
               TENSOR_TEXT(x), TENSOR_TEXT(weight));
}

static bool is_deferred(const Tensor *x)
{
    return precision_is_16_bits(backend_products()) && x->tape->recording && !x->reached;
}

/* `moments` is [2,rows] of a layer norm: the means, then the reciprocal standard deviations. Of an
 * RMS norm, which has no bias, it is [1,rows]: the reciprocals of the roots of the mean squares. */
static void write_norm(const Tensor *x, Tensor *weight, Tensor *bias, double epsilon,
                       Tensor *moments, Tensor *y)
{
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    real *first = reals(moments);
    tape_allocate(y);
    if (bias)
        kernel_layer_norm_forward(rows, columns, reals(x), reals(ready(weight)), reals(ready(bias)),
                                  epsilon, reals_or_halves(y), first, first + rows);
    else
        kernel_rms_norm_forward(rows, columns, reals(x), reals(ready(weight)), epsilon,
                                reals_or_halves(y), first);
}

static void norm_compute(Node *node)
{
    write_norm(node->saved[0], node->input[1], node->input[2], node->with.epsilon, node->saved[1],
               node->output);
}

static void norm_gradient(Node *node, Tensor *dy)
{
    Tensor *x = node->input[0], *weight = node->input[1], *bias = node->input[2];
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    const real *numbers = reals(node->saved[0]), *first = reals(node->saved[1]);
    bool accumulate;
    Tensor *dw = or_unread(gradient_sum(weight), weight, dy->tape);
    Tensor *db = bias ? or_unread(gradient_sum(bias), bias, dy->tape) : NULL;
    Tensor *dx = or_unread(gradient_room(x, &accumulate), x, dy->tape);
    if (bias)
        kernel_layer_norm_backward(rows, columns, reals(dy), numbers, reals(weight), first,
                                   first + rows, reals(dx), accumulate, reals(dw), reals(db));
    else
        kernel_rms_norm_backward(rows, columns, reals(dy), numbers, reals(weight), first, reals(dx),
                                 accumulate, reals(dw));
}

static Tensor *norm(const char *function, Tensor *x, Tensor *weight, Tensor *bias, double epsilon)
{
    must_not_be_ids(function, x);
    must_fit(function, x, weight);
    Tape *tape = tape_of(function, x, weight);
    Tensor *input[] = {x, weight, bias};
    const int inputs = bias ? 3 : 2;
    Tensor *y = tape_later(tape, x->shape, place_result(tape, PLACE_ROWS, function, x, NULL, LAST));
    mark_by_positions(tape, x, input + 1, inputs - 1);
    const int64_t rows = tensor_count(x) / shape_last(x->shape);
    Tensor *moments = tape_tensor(tape, REAL, SHAPE(inputs - 1, rows), whole());
    const bool deferred = is_deferred(ready(x));
    if (!deferred)
        write_norm(x, weight, bias, epsilon, moments, y);
    tape->next.of[0] = (Attribute){"epsilon", .number = epsilon};
    Node *node = tape_operation(tape, function, norm_gradient, y, inputs, input);
    if (node) {
        node_keep(node, 0, x);
        node_keep(node, 1, moments);
        node->with.epsilon = epsilon;
        node->compute = norm_compute;
        node->writes_16_bits = true;
    } else if (deferred) {
        write_norm(x, weight, bias, epsilon, moments, y);
    }
    return y;
}

Tensor *layer_norm_with(Tensor *x, Tensor *weight, Tensor *bias, double epsilon)
{
    return norm("layer_norm", x, weight, bias, epsilon);
}

Tensor *rms_norm(Tensor *x, Tensor *weight, double epsilon)
{
    return norm("rms_norm", x, weight, NULL, epsilon);
}
