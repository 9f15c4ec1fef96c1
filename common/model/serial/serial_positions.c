/* The ends of sequence parallelism on one rank, which has all positions. */
#include "model/transformer.h"

Tensor *split_positions(Tensor *x, const Mesh *mesh)
{
    return x;
}

Tensor *all_positions(Tensor *x, const Mesh *mesh)
{
    return x;
}
