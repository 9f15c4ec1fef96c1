/* Lab 6: two linear layers, one communication. Megatron-LM, figure 3a. */
#include "balise.h"

struct ColRowLinearPair {
    Tensor *up;   /* [inner, in] in full  */
    Tensor *down; /* [out, inner] in full */
    Dropout *dropout; /* after the GELU, between the two */
};

ColRowLinearPair *col_row_linear_pair_new(Builder *b, int in, int inner, int out, float p)
{
    ColRowLinearPair *layer = NEW(b, ColRowLinearPair);
    layer->up = parameter(within(b, "up"), "weight", SHAPE(inner, in), undecided(6)); /* TODO(6): two placements */
    layer->down = parameter(within(b, "down"), "weight", SHAPE(out, inner), undecided(6));
    layer->dropout = dropout_new(within(b, "dropout"), p);
    return layer;
}

/* x [..,in], whole  ->  [..,out], whole */
Tensor *col_row_linear_pair_forward(const ColRowLinearPair *layer, Tensor *x, const Mesh *mesh)
{
    TODO(6); /* 3 lines */
}
