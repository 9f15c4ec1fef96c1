/* SwiGLU. The backward pass recomputes its result where it was released. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

static void swiglu_gradient(Node *node, Tensor *dy)
{
    Tensor *gate = node->saved[0], *up = node->saved[1];
    dy = in_type_of(gate, dy);
    Tensor *dup = tape_tensor(dy->tape, up->dtype, up->shape, up->placement);
    Tensor *dgate = gradient_over(dy, gate->placement);
    kernel_swiglu_backward(tensor_count(gate), reals_or_halves(dy), reals_or_halves(gate),
                           reals_or_halves(up), reals_or_halves(dgate), reals_or_halves(dup));
    gradient_add(node->input[0], dgate);
    gradient_add(node->input[1], dup);
}

static void swiglu_compute(Node *node)
{
    node->output->dtype = node->saved[0]->dtype;
    tape_allocate(node->output);
    kernel_swiglu_forward(tensor_count(node->output), reals_or_halves(node->saved[0]),
                          reals_or_halves(node->saved[1]), reals_or_halves(node->output));
}

Tensor *swiglu(Tensor *gate, Tensor *up)
{
    must_not_be_ids("swiglu", gate);
    must_not_be_ids("swiglu", up);
    if (!shape_equal(gate->shape, up->shape))
        misuse("both must have the same shape", "swiglu: %s and %s", TENSOR_TEXT(gate),
               TENSOR_TEXT(up));
    Tape *tape = tape_of("swiglu", gate, up);
    place_result(tape, PLACE_NOT_PARTIAL, "swiglu", gate, NULL, LAST);
    if (available(gate)->dtype != available(up)->dtype) {
        ready(gate);
        ready(up);
    }
    Tensor *y = tape_tensor(tape, gate->dtype, gate->shape,
                            place_result(tape, PLACE_ALIKE, "swiglu", gate, up, LAST));
    kernel_swiglu_forward(tensor_count(gate), reals_or_halves(gate), reals_or_halves(up),
                          reals_or_halves(y));
    Node *node = tape_operation(tape, "swiglu", swiglu_gradient, y, 2, (Tensor *[]){gate, up});
    if (node) {
        node_keep(node, 0, gate);
        node_keep(node, 1, up);
        node->compute = swiglu_compute;
        node->takes_16_bits = true;
    }
    return y;
}
