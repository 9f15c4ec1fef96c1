/* tanh on the tape. */
#include "autograd/operations.h"
#include "autograd/placement.h"

static void tanh_gradient(Node *node, Tensor *dy)
{
    Tensor *y = node->saved[0], *dx = gradient_over(dy, y->placement);
    kernel_tanh_backward(tensor_count(y), reals(dy), reals(y), reals(dx));
    gradient_add(node->input[0], dx);
}

Tensor *tanh_of(Tensor *x)
{
    must_not_be_ids("tanh_of", x);
    Tape *tape = tape_of("tanh_of", x, NULL);
    Tensor *y = tape_tensor(tape, REAL, x->shape,
                            place_result(tape, PLACE_NOT_PARTIAL, "tanh_of", x, NULL, LAST));
    kernel_tanh_forward(tensor_count(x), reals(ready(x)), reals(y));
    Node *node = tape_operation(tape, "tanh", tanh_gradient, y, 1, &x);
    if (node)
        node_keep(node, 0, y);
    return y;
}
