#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

static int64_t rows_of(const Tensor *x)
{
    return tensor_count(x) / shape_last(x->shape);
}

static void linear_backward(Node *node, Tensor *dy)
{
    Tensor *x = node->input[0], *weight = node->input[1], *bias = node->input[2];
    int64_t in = weight->shape.size[1], out = weight->shape.size[0],
            rows = tensor_count(dy) / (out ? out : 1);
    const real *multiplied =
        reals(ready(node->saved[0])); /* first: what computes it again has its own line in a profile */
    bool accumulate;
    Tensor *dx = gradient_room(x, &accumulate);
    if (dx)
        kernel_linear_backward_input(rows, in, out, reals(dy), reals(node->saved[1]), reals(dx), accumulate);
    Tensor *dw = gradient_room(weight, &accumulate);
    if (dw)
        kernel_linear_backward_weight(rows, in, out, reals(dy), multiplied, reals(dw), accumulate);
    Tensor *db = bias ? gradient_room(bias, &accumulate) : NULL;
    if (db) {
        if (!accumulate)
            kernel_vector_fill(out, 0, reals(db));
        kernel_linear_backward_bias(rows, out, reals(dy), reals(db));
    }
}

static void check_linear(const Tensor *x, const Tensor *weight, const Tensor *bias)
{
    char a[96], b[96];
    if (x->dtype != REAL || weight->shape.rank != 2 || x->shape.rank < 1 ||
        shape_last(x->shape) != weight->shape.size[1])
        misuse(x->parameter && !weight->parameter
                   ? "the arguments are exchanged: linear(x, weight)"
                   : "the last dimension of x must be the second one of the weight, [out,in]",
               "linear: x %s does not fit the weight %s", tensor_text(x, a), tensor_text(weight, b));
    if (bias && (bias->shape.rank != 1 || bias->shape.size[0] != weight->shape.size[0]))
        misuse("a bias has one number for each output", "linear: the bias %s does not fit the weight %s",
               tensor_text(bias, a), tensor_text(weight, b));
    if (bias && weight->placement.kind == SHARD && weight->placement.dim == 1)
        misuse("add it after the sum",
               "linear: with a weight split by rows the bias would be added once a rank");
}

Tensor *linear_with_bias(Tensor *x, Tensor *weight, Tensor *bias)
{
    must_be_real("linear", x);
    must_be_real("linear", weight);
    check_linear(x, weight, bias);
    Tape *tape = tape_of("linear", x, weight);
    must_be_cut_evenly(tape, "linear", weight);
    Placement placement = place_linear(tape, x, weight);
    int64_t in = weight->shape.size[1], out = weight->shape.size[0];
    Tensor *y = tape_tensor(tape, REAL, shape_with(x->shape, x->shape.rank - 1, out), placement);
    kernel_linear_forward(rows_of(x), in, out, reals(ready(x)), reals(ready(weight)),
                          bias ? reals(ready(bias)) : NULL, reals(y));
    Node *node = tape_operation(tape, "linear", linear_backward, y, 3, (Tensor *[]){x, weight, bias});
    if (node) {
        node_keep_or_compute(node, 0, x);
        node_keep(node, 1, weight);
    }
    return y;
}

Tensor *linear(Tensor *x, Tensor *weight)
{
    return linear_with_bias(x, weight, NULL);
}
