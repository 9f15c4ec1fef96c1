/* ColWiseLinear on one rank: a plain linear layer, with which the judge compares lab 2. */
#include "balise.h"

struct ColWiseLinear {
    Tensor *weight; /* [out, in] */
};

ColWiseLinear *col_wise_linear_new(Builder *b, int in, int out)
{
    ColWiseLinear *layer = NEW(b, ColWiseLinear);
    layer->weight = parameter(b, "weight", SHAPE(out, in), whole());
    return layer;
}

Tensor *col_wise_linear_forward(const ColWiseLinear *layer, Tensor *x, const Mesh *mesh)
{
    return linear(x, layer->weight);
}
