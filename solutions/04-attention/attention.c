/* Lab 4: multi-head self-attention, A/tp heads on each rank. Megatron-LM, figure 3b. */
#include <math.h>

#include "balise.h"

struct MultiHeadSelfAttention {
    Tensor *query, *key, *value; /* [H/tp, H] */
    Tensor *output;              /* [H, H/tp] */
    int heads; /* on this rank */
    int head_size;
};

MultiHeadSelfAttention *attention_new(Builder *b, int hidden, int heads)
{
    MultiHeadSelfAttention *layer = NEW(b, MultiHeadSelfAttention);
    layer->query = parameter(b, "query", SHAPE(hidden, hidden), shard(0));
    layer->key = parameter(b, "key", SHAPE(hidden, hidden), shard(0));
    layer->value = parameter(b, "value", SHAPE(hidden, hidden), shard(0));
    layer->output = parameter(b, "output", SHAPE(hidden, hidden), shard(1));
    layer->heads = heads / b->mesh->tp_degree;
    layer->head_size = hidden / heads;
    return layer;
}

/* x [B,S,H], whole  ->  [B,S,H], whole.  mask [B,S]: 0 where there is only padding. */
Tensor *attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    x = duplication(x, mesh);
    Tensor *q = linear(x, layer->query); /* [B,S,H/tp] */
    Tensor *k = linear(x, layer->key);
    Tensor *v = linear(x, layer->value);
    Tensor *y = attention(q, k, v, mask, layer->heads, 1 / sqrtf((float)layer->head_size));
    return all_reduce(linear(y, layer->output), mesh);
}
