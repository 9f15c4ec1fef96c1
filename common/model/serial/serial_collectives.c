/* f, g and the all-gather on one rank, where they change nothing: for language models on the serial
 * stack. */
#include "balise.h"

Tensor *duplication_forward(Tensor *x, const Mesh *mesh)
{
    return x;
}

Tensor *duplication_backward(Tensor *dy, const Mesh *mesh)
{
    return dy;
}

Tensor *all_reduce_forward(Tensor *x, const Mesh *mesh)
{
    return x;
}

Tensor *all_reduce_backward(Tensor *dy, const Mesh *mesh)
{
    return dy;
}

Tensor *all_gather_forward(Tensor *x, int dim, const Mesh *mesh)
{
    return x;
}

Tensor *all_gather_backward(Tensor *dy, int dim, const Mesh *mesh)
{
    return dy;
}
