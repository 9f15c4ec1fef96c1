/* Lab 18: outside the products, each rank holds S/tp positions. */
#include "balise.h"

/*  this rank's positions [B,S/tp,H] -> all positions [B,S,H]  */
Tensor *gather_sequence_forward(Tensor *x, const Mesh *mesh)
{
    TODO(18); /* who has the other positions? */
}

/*  this rank's gradient of all positions [B,S,H] -> the gradient of its own [B,S/tp,H]  */
Tensor *gather_sequence_backward(Tensor *dy, const Mesh *mesh)
{
    TODO(18); /* every rank has used these positions */
}

/*  a partial sum [B,S,H] -> this rank's positions of the sum [B,S/tp,H]  */
Tensor *reduce_scatter_sequence_forward(Tensor *x, const Mesh *mesh)
{
    TODO(18); /* g, but a rank needs only its positions of the sum */
}

/*  the gradient of this rank's positions [B,S/tp,H] -> the gradient of its term [B,S,H]  */
Tensor *reduce_scatter_sequence_backward(Tensor *dy, const Mesh *mesh)
{
    TODO(18); /* in which positions is this rank's term? */
}

/*  x [B,S/tp,H] -> [B,S/tp,H]  */
Tensor *sequence_block_forward(const SequenceBlock *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    TODO(18); /* the block of lab 7: what takes all positions, and what only this rank's? */
}

/*  gradients [P]: those of all norms, summed in place  */
void sum_norm_gradients(Tensor *gradients, const Mesh *mesh)
{
    TODO(18); /* which positions did this rank's norms see? */
}
