/* Lab 20: the linear layers of Megatron-LM, with biases. */
#include "balise.h"

/* Each rank takes its part; the gradients of all parts are joined. */
Tensor *scatter_forward(Tensor *x, int dim, const Mesh *mesh)
{
    return part(x, dim, mesh->tp_rank, mesh->tp_degree);
}

Tensor *scatter_backward(Tensor *dy, int dim, const Mesh *mesh)
{
    return group_all_gather(mesh->tp, dy, dim);
}

ColumnParallelLinear column_parallel_linear_new(Builder *b, int in, int out, bool gather_output)
{
    return (ColumnParallelLinear){.weight = parameter(b, "weight", SHAPE(out, in), shard(0)),
                                  .bias = zero_parameter(b, "bias", SHAPE(out), shard(0)),
                                  .gather_output = gather_output};
}

Tensor *column_parallel_linear_forward(const ColumnParallelLinear *layer, Tensor *x, const Mesh *mesh)
{
    Tensor *y = linear_with_bias(duplication(x, mesh), layer->weight, layer->bias); /* [..,out/tp] */
    return layer->gather_output ? all_gather(y, LAST, mesh) : y;
}

RowParallelLinear row_parallel_linear_new(Builder *b, int in, int out, bool input_is_parallel)
{
    return (RowParallelLinear){.weight = parameter(b, "weight", SHAPE(out, in), shard(1)),
                               .bias = zero_parameter(b, "bias", SHAPE(out), whole()),
                               .input_is_parallel = input_is_parallel};
}

/* Each rank adds the bias to the sum, not to its partial sum, so the bias counts once. */
Tensor *row_parallel_linear_forward(const RowParallelLinear *layer, Tensor *x, const Mesh *mesh)
{
    if (!layer->input_is_parallel)
        x = scatter(x, LAST, mesh); /* [..,in/tp] */
    return add_bias(all_reduce(linear(x, layer->weight), mesh), layer->bias);
}

/* A rank holds the rows of its heads in each third of the weight. */
QueryKeyValue query_key_value_new(Builder *b, int hidden)
{
    return (QueryKeyValue){.weight = parameter(b, "weight", SHAPE(3, hidden, hidden), shard(1)),
                           .bias = zero_parameter(b, "bias", SHAPE(3, hidden), shard(1))};
}

Projections query_key_value_forward(const QueryKeyValue *layer, Tensor *x, const Mesh *mesh)
{
    Tensor *y = linear_with_bias(duplication(x, mesh), layer->weight, layer->bias); /* [B,S,3,H/tp] */
    return (Projections){take(y, 2, 0), take(y, 2, 1), take(y, 2, 2)};
}
