/* The doors of balise.h to what the words do not cover: own operations, and the numbers themselves. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

static const Placement unknown = {UNKNOWN, 0};

static void apply_gradient(Node *node, Tensor *dy)
{
    char a[96], b[96];
    Tensor *dx = node->with.pair.op->backward(dy, node->with.pair.mesh), *x = node->input[0];
    if (!dx || !shape_equal(dx->shape, x->shape))
        misuse("the gradient of an argument has its shape", "%s, backward: it returned %s for an argument %s",
               node->name, dx ? tensor_text(dx, a) : "NULL", tensor_text(x, b));
    gradient_add(x, ready(dx));
}

Tensor *apply(const Op *op, Tensor *x, const Mesh *mesh)
{
    Tape *tape = tape_of(op->name, x, NULL);
    bool recording = tape_record(tape, false);
    Tensor *value = op->forward(ready(x), mesh);
    tape_record(tape, recording);
    if (!value)
        misuse("return a tensor", "%s, forward: it returned NULL", op->name);
    Tensor *y = tape_view(tape, ready(value), is_split(tape) ? unknown : whole());
    Node *node = tape_operation(tape, op->name, apply_gradient, y, 1, &x);
    if (node) {
        node->with.pair.mesh = mesh;
        node->with.pair.op = op;
    }
    return y;
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
    if (x->tape && is_split(x->tape) && !x->parameter)
        x->placement = unknown;
    return x->data;
}
