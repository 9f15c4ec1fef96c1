/* Layers with biases, which the blocks of BERT and GPT-2 share. */
#include "model/biased.h"

#include <math.h>

#include "autograd/operations.h"

Norm norm_new(Builder *b, const TransformerConfig *c)
{
    return (Norm){parameter_with(b, "weight", SHAPE(c->hidden), whole(), ONES),
                  parameter_with(b, "bias", SHAPE(c->hidden), whole(), ZEROS), c->epsilon};
}

Tensor *norm_forward(const Norm *norm, Tensor *x)
{
    return layer_norm_with(x, norm->weight, norm->bias, norm->epsilon);
}

AttentionLayers attention_layers_new(Builder *b, const TransformerConfig *c)
{
    const int width = c->hidden;
    b = for_embedding(b); /* weights start from N(0, 0.02), as in BERT and GPT-2 */
    return (AttentionLayers){
        .query_key_value = query_key_value_new(within(b, "query_key_value"), width),
        .output = row_parallel_linear_new(within(b, "output"), width, width, true),
        .heads = c->heads / b->mesh->tp_degree,
        .factor = 1 / sqrtf((float)width / (float)c->heads)};
}

FeedForwardLayers feed_forward_layers_new(Builder *b, const TransformerConfig *c)
{
    b = for_embedding(b);
    return (FeedForwardLayers){
        .up = column_parallel_linear_new(within(b, "up"), c->hidden, c->inner, false),
        .down = row_parallel_linear_new(within(b, "down"), c->inner, c->hidden, true)};
}

bool feed_forward_layers_check(const TransformerConfig *c, int tp, Problem *problem)
{
    return c->inner % tp == 0 ||
           problem_set(problem, NULL, "choose a TP that divides their number",
                       "the %d columns of the feed-forward layers cannot be split evenly over "
                       "%d ranks",
                       c->inner, tp);
}
