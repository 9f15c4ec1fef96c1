/* Splitting and gathering positions on one rank, which has all of them. */
#include "model/transformer.h"

Tensor *split_positions(Tensor *x, const Mesh *mesh)
{
    return x;
}

Tensor *all_positions(Tensor *x, const Mesh *mesh)
{
    return x;
}
