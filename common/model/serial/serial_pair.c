/* ColRowLinearPair on one rank: two plain linear layers, with which the judge compares lab 6. */
#include "balise.h"

struct ColRowLinearPair {
    Linear *up, *down;
    Dropout *dropout;
};

ColRowLinearPair *col_row_linear_pair_new(Builder *b, int in, int inner, int out, float p)
{
    ColRowLinearPair *layer = NEW(b, ColRowLinearPair);
    layer->up = linear_new(within(b, "up"), in, inner);
    layer->down = linear_new(within(b, "down"), inner, out);
    layer->dropout = dropout_new(within(b, "dropout"), p);
    return layer;
}

Tensor *col_row_linear_pair_forward(const ColRowLinearPair *layer, Tensor *x, const Mesh *mesh)
{
    Tensor *h = dropout(layer->dropout, gelu(linear_forward(layer->up, x)));
    return linear_forward(layer->down, h);
}
