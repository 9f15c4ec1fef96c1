/* Lab 7: Block and Classifier. They work, with the feed-forward block of lab 5 in Block and two plain linear
 * layers in Classifier. TODO(7): in both, use one ColRowLinearPair instead; 3 lines change in Block, and the
 * Classifier becomes shorter. Its parameters are "head.up.weight" and "head.down.weight", before and after. */
#include "balise.h"

struct Block {
    LayerNorm *norm1, *norm2;
    MultiHeadSelfAttention *attention;
    FeedForward *feed_forward;
};

Block *block_new(Builder *b, int hidden, int heads, float p)
{
    Block *layer = NEW(b, Block);
    layer->norm1 = layer_norm_new(within(b, "norm1"), hidden);
    layer->attention = attention_new(within(b, "attention"), hidden, heads);
    layer->norm2 = layer_norm_new(within(b, "norm2"), hidden);
    layer->feed_forward = feed_forward_new(within(b, "feed_forward"), hidden, 4 * hidden, hidden, p);
    return layer;
}

/* x [B,S,H], whole  ->  [B,S,H], whole */
Tensor *block_forward(const Block *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    x = add(x, attention_forward(layer->attention, layer_norm(layer->norm1, x), mask, mesh));
    return add(x, feed_forward_forward(layer->feed_forward, layer_norm(layer->norm2, x), mesh));
}

/* Plain layers: two classes cannot be split over four ranks, so ColWiseLinear does not fit here. */
struct Classifier {
    Linear *up, *down;
    Dropout *dropout;
};

Classifier *classifier_new(Builder *b, int hidden, int classes, float p)
{
    Classifier *layer = NEW(b, Classifier);
    Builder *head = within(b, "head");
    layer->up = linear_new(within(head, "up"), hidden, hidden);
    layer->down = linear_new(within(head, "down"), hidden, classes);
    layer->dropout = dropout_new(within(head, "dropout"), p);
    return layer;
}

/* x [B,S,H], whole  ->  [B,classes], whole */
Tensor *classifier_forward(const Classifier *layer, Tensor *x, const Mesh *mesh)
{
    x = linear_forward(layer->up, first_token(x));
    return linear_forward(layer->down, dropout(layer->dropout, gelu(x)));
}
