/* The layers that lab 18 uses: a block's attention and feed-forward layers, without f and g. */
#include "model/sequence_block.h"

#include <math.h>

#include "model/transformer.h"

struct PartialAttention {
    Tensor *into[3]; /* [H/tp,H] each: of queries, keys and values */
    Tensor *out_of;  /* [H,H/tp] */
    int heads;       /* on this rank */
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
    static const char *const names[] = {"query", "key", "value"};
    const int ranks = b->mesh->tp_degree;
    for (int i = 0; i < 3; i++)
        layer->into[i] = parameter(b, names[i], SHAPE(hidden, hidden), shard(0));
    layer->out_of = parameter(b, "output", SHAPE(hidden, hidden), shard(1));
    layer->heads = heads / ranks;
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
    Tensor *to[3];
    for (int i = 0; i < 3; i++)
        to[i] = linear(x, layer->into[i]);
    Tensor *y = attention(to[0], to[1], to[2], mask, layer->heads, layer->factor);
    return linear(y, layer->out_of);
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
