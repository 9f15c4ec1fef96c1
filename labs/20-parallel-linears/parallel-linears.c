/* Lab 20: the linear layers of Megatron-LM, with biases. */
#include "balise.h"

/*  x, whole -> this rank's part of it along dim  */
Tensor *scatter_forward(Tensor *x, int dim, const Mesh *mesh)
{
    TODO(20); /* which part is it? */
}

/*  the gradient of this rank's part -> the gradient of x, whole  */
Tensor *scatter_backward(Tensor *dy, int dim, const Mesh *mesh)
{
    TODO(20); /* where is the rest of the gradient? */
}

ColumnParallelLinear column_parallel_linear_new(Builder *b, int in, int out, bool gather_output)
{
    return (ColumnParallelLinear){.weight = parameter(b, "weight", SHAPE(out, in), undecided(20)),
                                  .bias = zero_parameter(b, "bias", SHAPE(out), undecided(20)),
                                  .gather_output = gather_output};
}

/*  x [..,in], whole -> [..,out], whole, if gather_output; otherwise this rank's [..,out/tp]  */
Tensor *column_parallel_linear_forward(const ColumnParallelLinear *layer, Tensor *x, const Mesh *mesh)
{
    TODO(20); /* lab 2 with a bias; the gather is optional */
}

RowParallelLinear row_parallel_linear_new(Builder *b, int in, int out, bool input_is_parallel)
{
    return (RowParallelLinear){.weight = parameter(b, "weight", SHAPE(out, in), undecided(20)),
                               .bias = zero_parameter(b, "bias", SHAPE(out), undecided(20)),
                               .input_is_parallel = input_is_parallel};
}

/*  x [..,in/tp], if input_is_parallel; otherwise [..,in], whole -> [..,out], whole  */
Tensor *row_parallel_linear_forward(const RowParallelLinear *layer, Tensor *x, const Mesh *mesh)
{
    TODO(20); /* when is the bias added? */
}

QueryKeyValue query_key_value_new(Builder *b, int hidden)
{
    return (QueryKeyValue){.weight = parameter(b, "weight", SHAPE(3, hidden, hidden), undecided(20)),
                           .bias = zero_parameter(b, "bias", SHAPE(3, hidden), undecided(20))};
}

/*  x [B,S,H], whole -> q, k and v [B,S,H/tp] of this rank's heads  */
Projections query_key_value_forward(const QueryKeyValue *layer, Tensor *x, const Mesh *mesh)
{
    TODO(20); /* one f and one product for all three */
}
