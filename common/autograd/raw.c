/* The doors of balise.h to what the words do not cover: own operations, and the numbers themselves. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

static const Placement unknown = {UNKNOWN, 0};

static Tensor *apply_forward(Tensor *x, const PairCall *call)
{
    return call->op->forward(x, call->mesh);
}

static Tensor *apply_backward(Tensor *dy, const PairCall *call)
{
    return call->op->backward(dy, call->mesh);
}

Tensor *apply(const Op *op, Tensor *x, const Mesh *mesh)
{
    must_be_real(op->name, x);
    PairCall call = {op->name, apply_forward, apply_backward, .mesh = mesh, .op = op};
    return call_pair(call, x, is_split(tape_of(op->name, x, NULL)) ? unknown : whole());
}

static void placed_gradient(Node *node, Tensor *dy)
{
    gradient_add(node->input[0], dy);
}

Tensor *placed(Tensor *x, Placement placement)
{
    Tape *tape = tape_of("placed", x, NULL);
    if (placement.kind == SHARD)
        placement.dim = shape_dim("placed", x->shape, placement.dim);
    Tensor *y = tape_view(tape, ready(x), is_split(tape) ? placement : whole());
    tape_operation(tape, "placed", placed_gradient, y, 1, &x);
    return y;
}

Tensor *tensor_copy(Tensor *x)
{
    Tape *tape = tape_of("tensor_copy", x, NULL);
    Tensor *y = tape_tensor(tape, x->dtype, x->shape, x->placement);
    kernel_vector_copy(tensor_count(x), reals(ready(x)), reals(y)); /* ids are as wide as single precision */
    return y;
}

float *tensor_data(Tensor *x)
{
    ready(x);
    if (x->is_gradient)
        unshare(x);
    changed_in_place(x);
    if (x->tape && is_split(x->tape) && !x->parameter)
        x->placement = unknown;
    return x->data;
}
