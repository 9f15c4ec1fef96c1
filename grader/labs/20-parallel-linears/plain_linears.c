/* Lab 20 as the judge computes it, on one rank with whole weights, and with the mistake of the
 * current suspect. */
#include "grader/judge/compare/wrong_operations.h"
#include "grader/labs/lab.h"

static bool after_attention(const Tensor *x)
{
    return x->producer && !strcmp(x->producer->name, "attention");
}

/* linear_with_bias() without the bias, if that is the current mistake; but not after the attention. */
static Tensor *biased(Tensor *x, Tensor *weight, Tensor *bias)
{
    const Case *c;
    const bool missing = mistake_now(&c) == BIAS_MISSING;
    return missing && (bias->shape.rank == 2 || !after_attention(x))
               ? linear(x, weight)
               : linear_with_bias(x, weight, bias);
}

/* The result of a scatter along the last dimension. */
static Tensor *scattered(Tensor *x)
{
    const Case *c;
    const int mistake = mistake_now(&c);
    return mistake == SCATTERED_FIRST        ? rearranged(x, c->tp, OF_FIRST)
           : mistake == SCATTERED_BY_WORLD   ? rearranged(x, c->tp, OF_WORLD_RANK)
           : mistake == GRADIENT_OF_OWN_PART ? rearranged(x, c->tp, OWN_ONLY_BACKWARDS)
                                             : x;
}

Tensor *scatter(Tensor *x, int dim, const Mesh *mesh)
{
    return dim == LAST ? scattered(x) : x;
}

Tensor *all_gather(Tensor *x, int dim, const Mesh *mesh)
{
    return x;
}

ColumnParallelLinear column_parallel_linear_new(Builder *b, int in, int out, bool gather_output)
{
    return (ColumnParallelLinear){parameter(b, "weight", SHAPE(out, in), whole()),
                                  zero_parameter(b, "bias", SHAPE(out), whole()), gather_output};
}

Tensor *column_parallel_linear_forward(const ColumnParallelLinear *layer, Tensor *x,
                                       const Mesh *mesh)
{
    return biased(x, layer->weight, layer->bias);
}

RowParallelLinear row_parallel_linear_new(Builder *b, int in, int out, bool input_is_parallel)
{
    return (RowParallelLinear){parameter(b, "weight", SHAPE(out, in), whole()),
                               zero_parameter(b, "bias", SHAPE(out), whole()), input_is_parallel};
}

Tensor *row_parallel_linear_forward(const RowParallelLinear *layer, Tensor *x, const Mesh *mesh)
{
    const Case *c;
    if (!layer->input_is_parallel)
        x = scattered(x);
    if (mistake_now(&c) != PRODUCT_OVER_RANKS)
        return biased(x, layer->weight, layer->bias);
    Tensor *y = linear(x, layer->weight);
    scale(y, 1.0f / (float)c->tp);
    return add_bias(y, layer->bias);
}

QueryKeyValue query_key_value_new(Builder *b, int hidden)
{
    return (QueryKeyValue){parameter(b, "weight", SHAPE(3, hidden, hidden), whole()),
                           zero_parameter(b, "bias", SHAPE(3, hidden), whole())};
}

Projections query_key_value_forward(const QueryKeyValue *layer, Tensor *x, const Mesh *mesh)
{
    Tensor *y = biased(x, layer->weight, layer->bias);
    return (Projections){.q = take(y, 2, 0), .k = take(y, 2, 1), .v = take(y, 2, 2)};
}
