/* What language models share. */
#include "model/language.h"

#include "autograd/operations.h"

Tensor *vocabulary_embedding_new(Builder *b, const TransformerConfig *c, int twin)
{
    const Shape shape = SHAPE(c->vocabulary, c->hidden);
    Tensor *table = parameter_with(b, "weight", shape, shard(0), EMBEDDING_WEIGHT);
    table->parameter->twin = twin;
    table->may_be_uneven = true;
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

Tensor *vocabulary_embedding(Tensor *table, Tensor *ids, const Mesh *mesh)
{
    const int first = shard_begin(table), end = first + (int)tensor_size(table, 0);
    return all_reduce(lookup(ids_between(ids, first, end), table), mesh);
}

Tensor *vocabulary_logits(Tensor *table, Tensor *x, const Mesh *mesh)
{
    return linear(duplication(x, mesh), table);
}

Tensor *language_loss(Tensor *logits, Tensor *labels, int64_t rows_of_a_step, const Mesh *mesh)
{
    return vocabulary_parallel_cross_entropy(logits, labels, mesh); /* its tape counts the tokens */
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

__attribute__((weak)) Tensor *vocabulary_parallel_cross_entropy(Tensor *logits, Tensor *targets,
                                                                const Mesh *mesh)
{
    Tensor *most = group_all_max(mesh->tp ? mesh->tp : mesh->world, row_max(logits));
    /* first, so that its gradient is added to what row_sum_exp's has written */
    Tensor *right = all_reduce(row_pick(logits, most, own_ids(targets, logits)), mesh);
    Tensor *sum = all_reduce(row_sum_exp(logits, most), mesh);
    return mean_over_tokens(subtract(logarithm(sum), right), targets);
}
