/* Splits the positions before the first block, and gathers them after the last one. It is in a file
 * of its own because programs on one rank have neither the scatter nor the gather. */
#include "model/transformer.h"

Tensor *split_positions(Tensor *x, const Mesh *mesh)
{
    return mesh->tp_degree > 1 ? scatter(x, 1, mesh) : x;
}

Tensor *all_positions(Tensor *x, const Mesh *mesh)
{
    return mesh->tp_degree > 1 ? all_gather(x, 1, mesh) : x;
}
