/* Lab 18's block on one rank, which has all positions and whole sums. */
#include "balise.h"

Tensor *sequence_block_forward(const SequenceBlock *layer, Tensor *x, Tensor *mask,
                               const Mesh *mesh)
{
    Tensor *y = attention_partial(layer->attention, layer_norm(layer->norm1, x), mask);
    x = add(x, dropout(layer->dropout1, y));
    y = feed_forward_partial(layer->feed_forward, layer_norm(layer->norm2, x));
    return add(x, dropout(layer->dropout2, y));
}
