/* Lab 3: an embedding whose table is split over the ranks. */
#include "balise.h"

struct Embedding {
    Tensor *weight; /* [V, H] in full; you choose this rank's part */
};

Embedding *embedding_new(Builder *b, int vocabulary, int hidden)
{
    Embedding *layer = NEW(b, Embedding);
    layer->weight = parameter(b, "weight", SHAPE(vocabulary, hidden), undecided(3)); /* TODO(3) */
    return layer;
}

/* ids [B,S]  ->  [B,S,H], whole */
Tensor *embedding_forward(const Embedding *layer, Tensor *ids, const Mesh *mesh)
{
    TODO(3); /* 2 to 4 lines */
}
