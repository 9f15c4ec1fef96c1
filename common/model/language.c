/* What language models share. */
#include "model/language.h"

#include "autograd/operations.h"

Tensor *vocabulary_embedding_new(Builder *b, const TransformerConfig *c)
{
    return parameter_with(b, "weight", SHAPE(c->vocabulary, c->hidden), shard(0), EMBEDDING_WEIGHT);
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
