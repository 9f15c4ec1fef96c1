/* Lab 21: a language model whose vocabulary is split over the ranks. */
#include "balise.h"

/*  table [V/tp,H], ids [B,S] -> [B,S,H], whole  */
Tensor *vocabulary_embedding(Tensor *table, Tensor *ids, const Mesh *mesh)
{
    TODO(21); /* which ids does this rank look up, and where do the other rows come from? */
}

/*  table [V/tp,H], x [B,S,H], whole -> [B,S,V/tp]  */
Tensor *vocabulary_logits(Tensor *table, Tensor *x, const Mesh *mesh)
{
    TODO(21); /* f or g, and where? */
}

/*  logits [B,S,V/tp], targets [B,S] -> the mean over the tokens, [1]  */
Tensor *vocabulary_parallel_cross_entropy(Tensor *logits, Tensor *targets, const Mesh *mesh)
{
    TODO(21); /* three numbers for each position pass between the ranks: which ones? */
}
