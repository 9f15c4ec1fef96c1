/* Sequence parallelism before lab 18. */
#include "autograd/operations.h"
#include "comm/comm.h"
#include "mesh/mesh.h"

#define BEFORE_BALISE_18 __attribute__((weak))

/* The positions of all ranks, side by side. */
static Tensor *joined(Tensor *x, const Mesh *mesh)
{
    Group *ranks = mesh_tp_group(mesh);
    return group_all_gather(ranks, x, 1);
}

/* This rank's positions of the sum over the ranks. */
static Tensor *summed(Tensor *x, const Mesh *mesh)
{
    Group *ranks = mesh_tp_group(mesh);
    return group_reduce_scatter(ranks, x, 1);
}

BEFORE_BALISE_18 Tensor *gather_sequence_forward(Tensor *x, const Mesh *mesh)
{
    return joined(x, mesh);
}

BEFORE_BALISE_18 Tensor *gather_sequence_backward(Tensor *dy, const Mesh *mesh)
{
    return summed(dy, mesh);
}

BEFORE_BALISE_18 Tensor *reduce_scatter_sequence_forward(Tensor *x, const Mesh *mesh)
{
    return summed(x, mesh);
}

BEFORE_BALISE_18 Tensor *reduce_scatter_sequence_backward(Tensor *dy, const Mesh *mesh)
{
    return joined(dy, mesh);
}

BEFORE_BALISE_18 Tensor *sequence_block_forward(const SequenceBlock *layer, Tensor *x, Tensor *mask,
                                                const Mesh *mesh)
{
    Tensor *all = gather_sequence(layer_norm(layer->norm1, x), mesh);
    Tensor *term = attention_partial(layer->attention, all, mask);
    x = add(x, dropout(layer->dropout1, reduce_scatter_sequence(term, mesh)));
    all = gather_sequence(layer_norm(layer->norm2, x), mesh);
    term = feed_forward_partial(layer->feed_forward, all);
    return add(x, dropout(layer->dropout2, reduce_scatter_sequence(term, mesh)));
}

BEFORE_BALISE_18 void sum_norm_gradients(Tensor *gradients, const Mesh *mesh)
{
    const int64_t count = tensor_count(gradients);
    real *numbers = reals(gradients);
    comm_all_reduce(mesh_tp_group(mesh), numbers, numbers, count);
}
