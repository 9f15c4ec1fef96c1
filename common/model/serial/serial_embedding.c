/* An embedding with the full table on every rank: used until lab 3, and in the serial stack. */
#include "balise.h"

struct Embedding {
    Tensor *weight; /* [V, H] */
};

Embedding *embedding_new(Builder *b, int vocabulary, int hidden)
{
    Embedding *layer = NEW(b, Embedding);
    layer->weight = parameter(b, "weight", SHAPE(vocabulary, hidden), whole());
    return layer;
}

Tensor *embedding_forward(const Embedding *layer, Tensor *ids, const Mesh *mesh)
{
    return lookup(ids, layer->weight);
}
