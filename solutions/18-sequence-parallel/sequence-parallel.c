/* Lab 18: outside the products, each rank holds S/tp positions. Megatron-LM, arXiv:2205.05198, figure 5. */
#include "balise.h"

/* The paper's g. Every rank contributes its positions and gets all of them. */
Tensor *gather_sequence_forward(Tensor *x, const Mesh *mesh)
{
    return group_all_gather(mesh->tp, x, 1);
}

/* Every rank has used all positions: dx is this rank's part of the sum of every rank's dy. */
Tensor *gather_sequence_backward(Tensor *dy, const Mesh *mesh)
{
    return group_reduce_scatter(mesh->tp, dy, 1);
}

/* The paper's g-bar. Every rank contributes a partial sum and gets its positions of the sum. */
Tensor *reduce_scatter_sequence_forward(Tensor *x, const Mesh *mesh)
{
    return group_reduce_scatter(mesh->tp, x, 1);
}

/* A rank's term contributes to all positions, so dx is the dy of all positions. */
Tensor *reduce_scatter_sequence_backward(Tensor *dy, const Mesh *mesh)
{
    return group_all_gather(mesh->tp, dy, 1);
}

/* x [B,S/tp,H]  ->  [B,S/tp,H]: norm, dropout and residual on this rank's positions */
Tensor *sequence_block_forward(const SequenceBlock *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    Tensor *h = gather_sequence(layer_norm(layer->norm1, x), mesh); /* [B,S,H] */
    h = reduce_scatter_sequence(attention_partial(layer->attention, h, mask), mesh);
    x = add(x, dropout(layer->dropout1, h));
    h = gather_sequence(layer_norm(layer->norm2, x), mesh);
    h = reduce_scatter_sequence(feed_forward_partial(layer->feed_forward, h), mesh);
    return add(x, dropout(layer->dropout2, h));
}

/* A rank has the terms of the norms' gradients for its own positions. */
void sum_norm_gradients(Tensor *gradients, const Mesh *mesh)
{
    pending_wait(group_all_reduce_start(mesh->tp, gradients));
}
