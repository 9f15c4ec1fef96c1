/* Attention with every head on every rank: used until lab 4, and in the serial stack. */
#include <math.h>

#include "balise.h"

struct MultiHeadSelfAttention {
    Tensor *query, *key, *value, *output; /* [H, H] each */
    int heads, head_size;
};

MultiHeadSelfAttention *attention_new(Builder *b, int hidden, int heads)
{
    MultiHeadSelfAttention *layer = NEW(b, MultiHeadSelfAttention);
    layer->query = parameter(b, "query", SHAPE(hidden, hidden), whole());
    layer->key = parameter(b, "key", SHAPE(hidden, hidden), whole());
    layer->value = parameter(b, "value", SHAPE(hidden, hidden), whole());
    layer->output = parameter(b, "output", SHAPE(hidden, hidden), whole());
    layer->heads = heads;
    layer->head_size = hidden / heads;
    return layer;
}

Tensor *attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask,
                          const Mesh *mesh)
{
    Tensor *q = linear(x, layer->query);
    Tensor *k = linear(x, layer->key);
    Tensor *v = linear(x, layer->value);
    Tensor *y = attention(q, k, v, mask, layer->heads, 1 / sqrtf((float)layer->head_size));
    return linear(y, layer->output);
}
