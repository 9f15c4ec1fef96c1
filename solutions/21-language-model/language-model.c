/* Lab 21: a language model whose vocabulary is split over the ranks. */
#include "balise.h"

/* Each rank looks up the ids whose rows it holds, and has zeros for the others. */
Tensor *vocabulary_embedding(Tensor *table, Tensor *ids, const Mesh *mesh)
{
    int first = shard_begin(table), end = first + (int)tensor_size(table, 0);
    return all_reduce(lookup(ids_between(ids, first, end), table), mesh);
}

Tensor *vocabulary_logits(Tensor *table, Tensor *x, const Mesh *mesh)
{
    return linear(duplication(x, mesh), table);
}

/* log(sum of exp(x - most)) - (x of the target - most): the sum and the target's term come from all ranks. */
Tensor *vocabulary_parallel_cross_entropy(Tensor *logits, Tensor *targets, const Mesh *mesh)
{
    Tensor *most = group_all_max(mesh->tp, row_max(logits)); /* values only */
    Tensor *sum = all_reduce(row_sum_exp(logits, most), mesh);
    Tensor *right = all_reduce(row_pick(logits, most, own_ids(targets, logits)), mesh);
    return mean_over_tokens(subtract(logarithm(sum), right), targets);
}
