/* Layer norm and RMS norm on the tape. */
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

static void layer_norm_compute(Node *node)
{
    Tensor *x = node->saved[0], *y = node->output;
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    real *mean = reals(node->saved[1]);
    tape_allocate(y);
    kernel_layer_norm_forward(rows, columns, reals(x), reals(node->input[1]), reals(node->input[2]),
                              node->with.epsilon, reals(y), mean, mean + rows);
}

Tensor *layer_norm_with(Tensor *x, Tensor *weight, Tensor *bias, double epsilon)
{
    must_not_be_ids("layer_norm", x);
    must_fit("layer_norm", x, weight);
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    Tape *tape = tape_of("layer_norm", x, weight);
    Tensor *const weights[] = {weight, bias};
    Tensor *y = tape_tensor(tape, REAL, x->shape,
                            place_result(tape, PLACE_ROWS, "layer_norm", x, NULL, LAST));
    mark_by_positions(tape, x, weights, 2);
    Tensor *moments = tape_tensor(tape, REAL, SHAPE(2, rows), whole());
    kernel_layer_norm_forward(rows, columns, reals(ready(x)), reals(ready(weight)),
                              reals(ready(bias)), epsilon, reals(y), reals(moments),
                              reals(moments) + rows);
    tape->next.of[0] = (Attribute){"epsilon", .number = epsilon};
    Node *node = tape_operation(tape, "layer_norm", layer_norm_gradient, y, 3,
                                (Tensor *[]){x, weight, bias});
    if (node) {
        node_keep(node, 0, x);
        node_keep(node, 1, moments);
        node->with.epsilon = epsilon;
        node->compute = layer_norm_compute;
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

static void rms_norm_compute(Node *node)
{
    Tensor *x = node->saved[0], *y = node->output;
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    tape_allocate(y);
    kernel_rms_norm_forward(rows, columns, reals(x), reals(node->input[1]), node->with.epsilon,
                            reals(y), reals(node->saved[1]));
}

Tensor *rms_norm(Tensor *x, Tensor *weight, double epsilon)
{
    must_not_be_ids("rms_norm", x);
    must_fit("rms_norm", x, weight);
    int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    Tape *tape = tape_of("rms_norm", x, weight);
    Tensor *y = tape_tensor(tape, REAL, x->shape,
                            place_result(tape, PLACE_ROWS, "rms_norm", x, NULL, LAST));
    mark_by_positions(tape, x, &weight, 1);
    Tensor *rstd = tape_tensor(tape, REAL, SHAPE(rows), whole());
    kernel_rms_norm_forward(rows, columns, reals(ready(x)), reals(ready(weight)), epsilon, reals(y),
                            reals(rstd));
    tape->next.of[0] = (Attribute){"epsilon", .number = epsilon};
    Node *node = tape_operation(tape, "rms_norm", rms_norm_gradient, y, 2, (Tensor *[]){x, weight});
    if (node) {
        node_keep(node, 0, x);
        node_keep(node, 1, rstd);
        node->with.epsilon = epsilon;
        node->compute = rms_norm_compute;
    }
    return y;
}
