/* Before lab 20: the linear layers of BERT and GPT-2, which neither gather nor scatter columns, and
 * the scatter of positions. */
#include "balise.h"

#define BEFORE_BALISE_20 __attribute__((weak))

BEFORE_BALISE_20 Tensor *scatter_forward(Tensor *x, int dim, const Mesh *mesh)
{
    const int own = mesh->tp_rank, parts = mesh->tp_degree;
    return part(x, dim, own, parts);
}

BEFORE_BALISE_20 Tensor *scatter_backward(Tensor *dy, int dim, const Mesh *mesh)
{
    Group *ranks = mesh->tp ? mesh->tp : mesh->world;
    return group_all_gather(ranks, dy, dim);
}

BEFORE_BALISE_20 ColumnParallelLinear column_parallel_linear_new(Builder *b, int in, int out,
                                                                 bool gather_output)
{
    ColumnParallelLinear layer = {.gather_output = gather_output};
    layer.weight = parameter(b, "weight", SHAPE(out, in), shard(0));
    layer.bias = zero_parameter(b, "bias", SHAPE(out), shard(0));
    return layer;
}

BEFORE_BALISE_20 Tensor *column_parallel_linear_forward(const ColumnParallelLinear *layer,
                                                        Tensor *x, const Mesh *mesh)
{
    x = duplication(x, mesh);
    return linear_with_bias(x, layer->weight, layer->bias);
}

BEFORE_BALISE_20 RowParallelLinear row_parallel_linear_new(Builder *b, int in, int out,
                                                           bool input_is_parallel)
{
    RowParallelLinear layer = {.input_is_parallel = input_is_parallel};
    layer.weight = parameter(b, "weight", SHAPE(out, in), shard(1));
    layer.bias = zero_parameter(b, "bias", SHAPE(out), whole());
    return layer;
}

BEFORE_BALISE_20 Tensor *row_parallel_linear_forward(const RowParallelLinear *layer, Tensor *x,
                                                     const Mesh *mesh)
{
    Tensor *sum = all_reduce(linear(x, layer->weight), mesh);
    return add_bias(sum, layer->bias);
}

BEFORE_BALISE_20 QueryKeyValue query_key_value_new(Builder *b, int hidden)
{
    QueryKeyValue layer;
    layer.weight = parameter(b, "weight", SHAPE(3, hidden, hidden), shard(1));
    layer.bias = zero_parameter(b, "bias", SHAPE(3, hidden), shard(1));
    return layer;
}

BEFORE_BALISE_20 Projections query_key_value_forward(const QueryKeyValue *layer, Tensor *x,
                                                     const Mesh *mesh)
{
    Projections all;
    Tensor *y = linear_with_bias(duplication(x, mesh), layer->weight, layer->bias);
    Tensor **const each[] = {&all.q, &all.k, &all.v};
    for (int i = 0; i < 3; i++)
        *each[i] = take(y, 2, i);
    return all;
}
