/* Lab 6: two linear layers, one communication. Megatron-LM, figure 3a. */
#include "balise.h"

struct ColRowLinearPair {
    Tensor *up;   /* [inner/tp, in]  */
    Tensor *down; /* [out, inner/tp] */
    Dropout *dropout; /* after the GELU, between the two */
};

ColRowLinearPair *col_row_linear_pair_new(Builder *b, int in, int inner, int out, float p)
{
    ColRowLinearPair *layer = NEW(b, ColRowLinearPair);
    layer->up = parameter(within(b, "up"), "weight", SHAPE(inner, in), shard(0));
    layer->down = parameter(within(b, "down"), "weight", SHAPE(out, inner), shard(1));
    layer->dropout = dropout_new(within(b, "dropout"), p);
    return layer;
}

/* x [..,in], whole  ->  [..,out], whole */
Tensor *col_row_linear_pair_forward(const ColRowLinearPair *layer, Tensor *x, const Mesh *mesh)
{
    x = duplication(x, mesh);
    Tensor *h = dropout(layer->dropout, gelu(linear(x, layer->up))); /* [..,inner/tp] */
    return all_reduce(linear(h, layer->down), mesh);
}
