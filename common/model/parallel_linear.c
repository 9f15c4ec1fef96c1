/* Linear layers with biases, split over the tp ranks. */
#include "model/parallel_linear.h"

#include "autograd/operations.h"

ColumnParallelLinear *column_parallel_linear_new(Builder *b, int in, int out)
{
    ColumnParallelLinear *layer = NEW(b, ColumnParallelLinear);
    layer->weight = parameter(b, "weight", SHAPE(out, in), shard(0));
    layer->bias = parameter_with(b, "bias", SHAPE(out), shard(0), ZEROS);
    return layer;
}

Tensor *column_parallel_linear_of_copied(const ColumnParallelLinear *layer, Tensor *x)
{
    return linear_with_bias(x, layer->weight, layer->bias);
}

Tensor *column_parallel_linear_forward(const ColumnParallelLinear *layer, Tensor *x,
                                       const Mesh *mesh)
{
    return column_parallel_linear_of_copied(layer, duplication(x, mesh));
}

RowParallelLinear *row_parallel_linear_new(Builder *b, int in, int out)
{
    RowParallelLinear *layer = NEW(b, RowParallelLinear);
    layer->weight = parameter(b, "weight", SHAPE(out, in), shard(1));
    layer->bias = parameter_with(b, "bias", SHAPE(out), whole(), ZEROS);
    return layer;
}

Tensor *row_parallel_linear_forward(const RowParallelLinear *layer, Tensor *x, const Mesh *mesh)
{
    return add_bias(all_reduce(linear(x, layer->weight), mesh), layer->bias);
}
