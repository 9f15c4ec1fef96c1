/* Lab 2: a linear layer whose weight is split along its output dimension ("column-parallel"). */
#include "balise.h"

struct ColWiseLinear {
    Tensor *weight; /* [out/tp, in] */
};

ColWiseLinear *col_wise_linear_new(Builder *b, int in, int out)
{
    ColWiseLinear *layer = NEW(b, ColWiseLinear);
    layer->weight = parameter(b, "weight", SHAPE(out, in), undecided(2)); /* TODO(2): whole() or shard(dimension) */
    return layer;
}

/* x [B,S,in], whole  ->  [B,S,out], whole */
Tensor *col_wise_linear_forward(const ColWiseLinear *layer, Tensor *x, const Mesh *mesh)
{
    TODO(2); /* 3 lines */
}
