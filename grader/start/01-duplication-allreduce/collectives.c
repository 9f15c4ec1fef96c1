/* Lab 1: f and g of Megatron-LM, figure 3. Here the ranks that split the model are the whole world. */
#include "balise.h"

/* f, forward: x is the same on every rank  ->  y, the same on every rank */
Tensor *duplication_forward(Tensor *x, const Mesh *mesh)
{
    TODO(1); /* 1 line */
}

/* f, backward: dy is the gradient of this rank's y  ->  the gradient of x, on every rank */
Tensor *duplication_backward(Tensor *dy, const Mesh *mesh)
{
    TODO(1); /* 1 line */
}

/* g, forward: x is this rank's partial sum  ->  y, the sum over the ranks, on every rank */
Tensor *all_reduce_forward(Tensor *x, const Mesh *mesh)
{
    TODO(1); /* 1 line */
}

/* g, backward: dy is the gradient of y, the same on every rank  ->  the gradient of this rank's x */
Tensor *all_reduce_backward(Tensor *dy, const Mesh *mesh)
{
    TODO(1); /* 1 line */
}

/* Given, as the worked example. Every rank contributes a shard x and gets all shards, joined along dim. */
Tensor *all_gather_forward(Tensor *x, int dim, const Mesh *mesh)
{
    return group_all_gather(mesh->world, x, dim);
}

/* Given. Forward: y = [x_0 x_1 ...]. So dx is this rank's part of dy, which is the same on every rank. */
Tensor *all_gather_backward(Tensor *dy, int dim, const Mesh *mesh)
{
    return part(dy, dim, mesh->tp_rank, mesh->tp_degree);
}
