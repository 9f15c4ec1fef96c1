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
    b = for_embedding(b); /* weights begin as N(0, 0.02), as in BERT and GPT-2 */
    return (AttentionLayers){.query = column_parallel_linear_new(within(b, "query"), width, width),
                             .key = column_parallel_linear_new(within(b, "key"), width, width),
                             .value = column_parallel_linear_new(within(b, "value"), width, width),
                             .output = row_parallel_linear_new(within(b, "output"), width, width),
                             .heads = c->heads / b->mesh->tp_degree};
}

void attention_layers_project(const AttentionLayers *layers, Tensor *x, const Mesh *mesh,
                              Tensor **q, Tensor **k, Tensor **v)
{
    x = duplication(x, mesh);
    *q = column_parallel_linear_of_copied(layers->query, x);
    *k = column_parallel_linear_of_copied(layers->key, x);
    *v = column_parallel_linear_of_copied(layers->value, x);
}

float attention_layers_factor(const AttentionLayers *layers)
{
    const int64_t head_size = tensor_size(layers->query->weight, 0) / layers->heads;
    return 1 / sqrtf((float)head_size);
}

FeedForwardLayers feed_forward_layers_new(Builder *b, const TransformerConfig *c)
{
    b = for_embedding(b);
    return (FeedForwardLayers){
        .up = column_parallel_linear_new(within(b, "up"), c->hidden, c->inner),
        .down = row_parallel_linear_new(within(b, "down"), c->inner, c->hidden)};
}

bool feed_forward_layers_check(const TransformerConfig *c, int tp, Problem *problem)
{
    return c->inner % tp == 0 ||
           problem_set(problem, NULL, "choose a TP that divides it",
                       "the %d columns of the feed-forward layers cannot be split evenly over "
                       "%d ranks",
                       c->inner, tp);
}
