/* GELU by tanh and SwiGLU. The backward pass recomputes their results where they were released. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

static void gelu_tanh_gradient(Node *node, Tensor *dy)
{
    Tensor *x = node->saved[0], *dx = gradient_over(dy, x->placement);
    kernel_gelu_tanh_backward(tensor_count(x), reals(dy), reals(x), reals(dx));
    gradient_add(node->input[0], dx);
}

static void gelu_tanh_compute(Node *node)
{
    tape_allocate(node->output);
    kernel_gelu_tanh_forward(tensor_count(node->output), reals(node->saved[0]),
                             reals(node->output));
}

Tensor *gelu_tanh(Tensor *x)
{
    must_be_real("gelu_tanh", x);
    Tape *tape = tape_of("gelu_tanh", x, NULL);
    Tensor *y = tape_tensor(tape, REAL, x->shape,
                            place_result(tape, PLACE_NOT_PARTIAL, "gelu_tanh", x, NULL, LAST));
    kernel_gelu_tanh_forward(tensor_count(x), reals(ready(x)), reals(y));
    Node *node = tape_operation(tape, "gelu_tanh", gelu_tanh_gradient, y, 1, &x);
    if (node) {
        node_keep(node, 0, x);
        node->compute = gelu_tanh_compute;
    }
    return y;
}

static void swiglu_gradient(Node *node, Tensor *dy)
{
    Tensor *gate = node->saved[0], *up = node->saved[1];
    Tensor *dup = tape_tensor(dy->tape, REAL, up->shape, up->placement);
    Tensor *dgate = gradient_over(dy, gate->placement);
    kernel_swiglu_backward(tensor_count(gate), reals(dy), reals(gate), reals(up), reals(dgate),
                           reals(dup));
    gradient_add(node->input[0], dgate);
    gradient_add(node->input[1], dup);
}

static void swiglu_compute(Node *node)
{
    tape_allocate(node->output);
    kernel_swiglu_forward(tensor_count(node->output), reals(node->saved[0]), reals(node->saved[1]),
                          reals(node->output));
}

Tensor *swiglu(Tensor *gate, Tensor *up)
{
    must_be_real("swiglu", gate);
    must_be_real("swiglu", up);
    if (!shape_equal(gate->shape, up->shape))
        misuse("both must have the same shape", "swiglu: %s and %s", TENSOR_TEXT(gate),
               TENSOR_TEXT(up));
    Tape *tape = tape_of("swiglu", gate, up);
    place_result(tape, PLACE_NOT_PARTIAL, "swiglu", gate, NULL, LAST);
    Tensor *y = tape_tensor(tape, REAL, gate->shape,
                            place_result(tape, PLACE_ALIKE, "swiglu", gate, up, LAST));
    kernel_swiglu_forward(tensor_count(gate), reals(ready(gate)), reals(ready(up)), reals(y));
    Node *node = tape_operation(tape, "swiglu", swiglu_gradient, y, 2, (Tensor *[]){gate, up});
    if (node) {
        node_keep(node, 0, gate);
        node_keep(node, 1, up);
        node->compute = swiglu_compute;
    }
    return y;
}
