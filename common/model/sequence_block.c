/* Attention and feed-forward layers of a block without f and g, which balise 18 is given. */
#include "model/sequence_block.h"

#include <math.h>

#include "model/transformer.h"

struct PartialAttention {
    Tensor *query, *key, *value; /* [H/tp,H] */
    Tensor *output;              /* [H,H/tp] */
    int heads;                   /* on this rank */
    float factor;
};

struct PartialFeedForward {
    Tensor *up;   /* [F/tp,H] */
    Tensor *down; /* [H,F/tp] */
    Dropout *dropout;
};

static PartialAttention *partial_attention_new(Builder *b, int hidden, int heads)
{
    PartialAttention *layer = NEW(b, PartialAttention);
    layer->query = parameter(b, "query", SHAPE(hidden, hidden), shard(0));
    layer->key = parameter(b, "key", SHAPE(hidden, hidden), shard(0));
    layer->value = parameter(b, "value", SHAPE(hidden, hidden), shard(0));
    layer->output = parameter(b, "output", SHAPE(hidden, hidden), shard(1));
    layer->heads = heads / b->mesh->tp_degree;
    layer->factor = 1 / sqrtf((float)hidden / (float)heads);
    return layer;
}

static PartialFeedForward *partial_feed_forward_new(Builder *b, int hidden, int inner,
                                                    double probability)
{
    PartialFeedForward *layer = NEW(b, PartialFeedForward);
    layer->up = parameter(within(b, "up"), "weight", SHAPE(inner, hidden), shard(0));
    layer->down = parameter(within(b, "down"), "weight", SHAPE(hidden, inner), shard(1));
    layer->dropout = dropout_new(within(b, "dropout"), (float)probability);
    return layer;
}

SequenceBlock *sequence_block_new(Builder *b, int hidden, int heads, int inner,
                                  SequenceDropout dropout)
{
    SequenceBlock *layer = NEW(b, SequenceBlock);
    layer->norm1 = layer_norm_new(within(b, "norm1"), hidden);
    layer->attention = partial_attention_new(within(b, "attention"), hidden, heads);
    layer->norm2 = layer_norm_new(within(b, "norm2"), hidden);
    layer->feed_forward =
        partial_feed_forward_new(within(b, "feed_forward"), hidden, inner, dropout.inner);
    layer->dropout1 = dropout_new(within(b, "dropout1"), (float)dropout.residual);
    layer->dropout2 = dropout_new(within(b, "dropout2"), (float)dropout.residual);
    return layer;
}

static Tensor *attend(const void *made, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const PartialAttention *layer = made;
    Tensor *q = linear(x, layer->query), *k = linear(x, layer->key), *v = linear(x, layer->value);
    return linear(attention(q, k, v, mask, layer->heads, layer->factor), layer->output);
}

Tensor *attention_partial(const PartialAttention *layer, Tensor *x, Tensor *mask)
{
    const Tape *tape = tape_of("attention_partial", x, mask);
    return attention_segment(attend, layer, x, mask, tape->mesh);
}

Tensor *feed_forward_partial(const PartialFeedForward *layer, Tensor *x)
{
    return linear(dropout(layer->dropout, gelu(linear(x, layer->up))), layer->down);
}
