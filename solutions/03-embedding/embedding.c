/// /* Balise 3: an embedding whose table is shared out over the ranks. */
/* Balise 3: an embedding whose table is split along the hidden dimension. */
///
#include "balise.h"

struct Embedding {
    /// Tensor *weight; /* [V, H] in full; what is here is for you to choose */
    Tensor *weight; /* [V, H/tp] */
    ///
};

Embedding *embedding_new(Builder *b, int vocabulary, int hidden)
{
    Embedding *layer = NEW(b, Embedding);
    /// layer->weight = parameter(b, "weight", SHAPE(vocabulary, hidden), undecided(3)); /* TODO(3) */
    layer->weight = parameter(b, "weight", SHAPE(vocabulary, hidden), shard(1));
    ///
    return layer;
}

/* ids [B,S]  ->  [B,S,H], whole */
Tensor *embedding_forward(const Embedding *layer, Tensor *ids, const Mesh *mesh)
{
    /// TODO(3); /* 2 to 4 lines */
    Tensor *y = lookup(ids, layer->weight); /* [B,S,H/tp] */
    return all_gather(y, LAST, mesh);
    ///
}
