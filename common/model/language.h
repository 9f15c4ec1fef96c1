/** @file
 * What language models share: an embedding that is split along the vocabulary, a head over it, and
 * memory for keys and values (Megatron-LM, arXiv:1909.08053, section 3, "output embedding").
 */
#pragma once

#include "model/transformer.h"

/** A table with a row for each token, of which each tp rank holds consecutive rows.
 *  `weight` [V,H], split along V. */
Tensor *vocabulary_embedding_new(Builder *b, const TransformerConfig *config);
/** ids [B,S] -> [B,S,H], whole. */
Tensor *vocabulary_embedding(Tensor *table, Tensor *ids, const Mesh *mesh);

/** x [B,S,H], whole -> logits [B,S,V/tp] of this rank's rows of the table. */
Tensor *vocabulary_logits(Tensor *table, Tensor *x, const Mesh *mesh);

/** The keys and values of earlier positions, for writing a text token by token. */
typedef struct KeyValueCache {
    Tensor *keys, *values; /**< [1,positions,width], or NULL: there is no cache */
} KeyValueCache;

/** A cache for this rank's `width` columns of keys; an empty one if config->cached is 0. */
KeyValueCache key_value_cache_new(Builder *b, const TransformerConfig *config, int width);

/** Stores k and v [1,S,width] behind the tape->batch.past earlier ones, and replaces each by all that the cache then holds:
 *  [1,past+S,width]. Leaves them as they are if there is no cache. */
void key_value_cache_add(const KeyValueCache *cache, Tensor **k, Tensor **v);
