/* Lab 4: multi-head self-attention, A/tp heads on each rank. Megatron-LM, figure 3b. */
#include <math.h>

#include "balise.h"

struct MultiHeadSelfAttention {
    Tensor *query, *key, *value; /* [H, H] in full */
    Tensor *output;              /* [H, H] in full */
    int heads; /* on this rank */
    int head_size;
};

MultiHeadSelfAttention *attention_new(Builder *b, int hidden, int heads)
{
    MultiHeadSelfAttention *layer = NEW(b, MultiHeadSelfAttention);
    layer->query = parameter(b, "query", SHAPE(hidden, hidden), undecided(4)); /* TODO(4): four placements */
    layer->key = parameter(b, "key", SHAPE(hidden, hidden), undecided(4));
    layer->value = parameter(b, "value", SHAPE(hidden, hidden), undecided(4));
    layer->output = parameter(b, "output", SHAPE(hidden, hidden), undecided(4));
    TODO(4); /* heads and head_size, 2 lines; b->mesh is the mesh */
    return layer;
}

/* x [B,S,H], whole  ->  [B,S,H], whole.  mask [B,S]: 0 where there is only padding. */
Tensor *attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    TODO(4); /* 6 lines */
}
