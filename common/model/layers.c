/* The given layers: whole on every rank, without communication. */
#include "autograd/operations.h"
#include "base/run.h"
#include "model/model.h"

static const double layer_norm_epsilon = 1e-5; /* PyTorch's default */

struct Linear {
    Tensor *weight; /* [out, in] */
};

Linear *linear_new(Builder *b, int in, int out)
{
    Linear *layer = NEW(b, Linear);
    layer->weight = parameter(b, "weight", SHAPE(out, in), whole());
    return layer;
}

Tensor *linear_forward(const Linear *layer, Tensor *x)
{
    must_exist("linear_forward", layer);
    return linear(x, layer->weight);
}

struct LayerNorm {
    Tensor *weight, *bias; /* [H] */
};

LayerNorm *layer_norm_new(Builder *b, int size)
{
    LayerNorm *layer = NEW(b, LayerNorm);
    layer->weight = parameter_with(b, "weight", SHAPE(size), whole(), ONES);
    layer->bias = parameter_with(b, "bias", SHAPE(size), whole(), ZEROS);
    return layer;
}

Tensor *layer_norm(const LayerNorm *layer, Tensor *x)
{
    must_exist("layer_norm", layer);
    return layer_norm_with(x, layer->weight, layer->bias, layer_norm_epsilon);
}

struct Dropout {
    const char *name;
    double probability;
};

Dropout *dropout_new(Builder *b, float probability)
{
    Dropout *layer = NEW(b, Dropout);
    layer->name = builder_path(b);
    layer->probability = (double)probability;
    return layer;
}

Tensor *dropout(const Dropout *layer, Tensor *x)
{
    must_exist("dropout", layer);
    return dropout_with(x, layer->name, layer->probability);
}
