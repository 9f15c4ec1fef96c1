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

/* saved[1] is [2,rows]: the means, then the reciprocal standard deviations. */
static void layer_norm_gradient(Node *node, Tensor *dy)
{
    Tensor *x = node->input[0], *weight = node->input[1], *bias = node->input[2];
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    const real *mean = reals(node->saved[1]), *rstd = mean + rows;
    bool accumulate;
    Tensor *dw = or_unread(gradient_sum(weight), weight, dy->tape);
    Tensor *db = or_unread(gradient_sum(bias), bias, dy->tape);
    Tensor *dx = or_unread(gradient_room(x, &accumulate), x, dy->tape);
    kernel_layer_norm_backward(rows, columns, reals(dy), reals(node->saved[0]), reals(weight), mean,
                               rstd, reals(dx), accumulate, reals(dw), reals(db));
}

static void write_layer_norm(const Tensor *x, Tensor *weight, Tensor *bias, double epsilon,
                             Tensor *moments, Tensor *y)
{
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    real *mean = reals(moments);
    tape_allocate(y);
    kernel_layer_norm_forward(rows, columns, reals(x), reals(ready(weight)), reals(ready(bias)),
                              epsilon, reals_or_halves(y), mean, mean + rows);
}

static void layer_norm_compute(Node *node)
{
    write_layer_norm(node->saved[0], node->input[1], node->input[2], node->with.epsilon,
                     node->saved[1], node->output);
}

Tensor *layer_norm_with(Tensor *x, Tensor *weight, Tensor *bias, double epsilon)
{
    must_not_be_ids("layer_norm", x);
    must_fit("layer_norm", x, weight);
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    Tape *tape = tape_of("layer_norm", x, weight);
    Tensor *const weights[] = {weight, bias};
    Tensor *y =
        tape_later(tape, x->shape, place_result(tape, PLACE_ROWS, "layer_norm", x, NULL, LAST));
    mark_by_positions(tape, x, weights, 2);
    Tensor *moments = tape_tensor(tape, REAL, SHAPE(2, rows), whole());
    const bool deferred = is_deferred(ready(x));
    if (!deferred)
        write_layer_norm(x, weight, bias, epsilon, moments, y);
    tape->next.of[0] = (Attribute){"epsilon", .number = epsilon};
    Node *node = tape_operation(tape, "layer_norm", layer_norm_gradient, y, 3,
                                (Tensor *[]){x, weight, bias});
    if (node) {
        node_keep(node, 0, x);
        node_keep(node, 1, moments);
        node->with.epsilon = epsilon;
        node->compute = layer_norm_compute;
        node->writes_16_bits = true;
    } else if (deferred) {
        write_layer_norm(x, weight, bias, epsilon, moments, y);
    }
    return y;
}

/* saved[1] is [rows]: the reciprocals of the roots of the mean squares. */
static void rms_norm_gradient(Node *node, Tensor *dy)
{
    Tensor *x = node->input[0], *weight = node->input[1];
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    bool accumulate;
    Tensor *dw = or_unread(gradient_sum(weight), weight, dy->tape);
    Tensor *dx = or_unread(gradient_room(x, &accumulate), x, dy->tape);
    kernel_rms_norm_backward(rows, columns, reals(dy), reals(node->saved[0]), reals(weight),
                             reals(node->saved[1]), reals(dx), accumulate, reals(dw));
}

static void write_rms_norm(const Tensor *x, Tensor *weight, double epsilon, Tensor *rstd, Tensor *y)
{
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    tape_allocate(y);
    kernel_rms_norm_forward(rows, columns, reals(x), reals(ready(weight)), epsilon,
                            reals_or_halves(y), reals(rstd));
}

static void rms_norm_compute(Node *node)
{
    write_rms_norm(node->saved[0], node->input[1], node->with.epsilon, node->saved[1],
                   node->output);
}

Tensor *rms_norm(Tensor *x, Tensor *weight, double epsilon)
{
    must_not_be_ids("rms_norm", x);
    must_fit("rms_norm", x, weight);
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    Tape *tape = tape_of("rms_norm", x, weight);
    Tensor *y =
        tape_later(tape, x->shape, place_result(tape, PLACE_ROWS, "rms_norm", x, NULL, LAST));
    mark_by_positions(tape, x, &weight, 1);
    Tensor *rstd = tape_tensor(tape, REAL, SHAPE(rows), whole());
    const bool deferred = is_deferred(ready(x));
    if (!deferred)
        write_rms_norm(x, weight, epsilon, rstd, y);
    tape->next.of[0] = (Attribute){"epsilon", .number = epsilon};
    Node *node = tape_operation(tape, "rms_norm", rms_norm_gradient, y, 2, (Tensor *[]){x, weight});
    if (node) {
        node_keep(node, 0, x);
        node_keep(node, 1, rstd);
        node->with.epsilon = epsilon;
        node->compute = rms_norm_compute;
        node->writes_16_bits = true;
    } else if (deferred) {
        write_rms_norm(x, weight, epsilon, rstd, y);
    }
    return y;
}
