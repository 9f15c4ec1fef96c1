/* The embedding, head, loss and cache that language models share. */
#include "model/language.h"

#include "autograd/operations.h"

Tensor *vocabulary_embedding_new(Builder *b, const TransformerConfig *c, int twin)
{
    const Shape shape = SHAPE(c->vocabulary, c->hidden);
    Tensor *table = parameter_with(b, "weight", shape, shard(0), EMBEDDING_WEIGHT);
    table->parameter->twin = twin;
    table->parameter->may_be_uneven = true;
    return table;
}

int vocabulary_twin(const Builder *b, const TransformerConfig *c)
{
    const int last = b->mesh->pp_degree - 1;
    return last > 0 && !c->own_head ? last : -1;
}

Tensor *vocabulary_head_new(Builder *b, const TransformerConfig *c, const void *embedding)
{
    if (c->own_head)
        return vocabulary_embedding_new(within(b, "head"), c, -1);
    return embedding ? (Tensor *)embedding : vocabulary_embedding_new(within(b, "embedding"), c, 0);
}

Tensor *language_loss(Tensor *logits, Tensor *labels, int64_t rows_of_a_step, const Mesh *mesh)
{
    /* Divides by the tape's tokens, not by rows. */
    return vocabulary_parallel_cross_entropy(logits, labels, mesh);
}

KeyValueCache key_value_cache_new(Builder *b, const TransformerConfig *c, int width)
{
    const Shape shape = SHAPE(1, c->cached, width);
    return c->cached ? (KeyValueCache){model_state(b, shape), model_state(b, shape)}
                     : (KeyValueCache){0};
}

void key_value_cache_add(const KeyValueCache *cache, Tensor **k, Tensor **v)
{
    if (!cache->keys)
        return;
    *k = append_rows(cache->keys, *k);
    *v = append_rows(cache->values, *v);
}

/* ---- before lab 21 ------------------------------------------------------------------------------------ */

__attribute__((weak)) Tensor *vocabulary_embedding(Tensor *table, Tensor *ids, const Mesh *mesh)
{
    const int begin = shard_begin(table), rows = (int)tensor_size(table, 0);
    Tensor *own = lookup(ids_between(ids, begin, begin + rows), table);
    return all_reduce(own, mesh);
}

__attribute__((weak)) Tensor *vocabulary_logits(Tensor *table, Tensor *x, const Mesh *mesh)
{
    Tensor *copy = duplication(x, mesh);
    return linear(copy, table);
}

__attribute__((weak)) Tensor *vocabulary_parallel_cross_entropy(Tensor *logits, Tensor *targets,
                                                                const Mesh *mesh)
{
    Group *ranks = mesh->tp ? mesh->tp : mesh->world;
    Tensor *highest = group_all_max(ranks, row_max(logits)), *columns = own_ids(targets, logits);
    /* chosen comes first: backward then adds its gradient to the one that row_sum_exp wrote */
    Tensor *chosen = all_reduce(row_pick(logits, highest, columns), mesh),
           *sums = all_reduce(row_sum_exp(logits, highest), mesh);
    Tensor *losses = subtract(logarithm(sums), chosen);
    return mean_over_tokens(losses, targets);
}
