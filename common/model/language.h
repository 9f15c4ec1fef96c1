/** @file
 * The parts that language models share: an embedding that is split along the vocabulary, a head
 * that is split in the same way, and a cache of keys and values (Megatron-LM, arXiv:1909.08053,
 * section 3, "output embedding"). Weak versions of the functions of lab 21 are here, for training
 * before that lab.
 */
#pragma once

#include "model/transformer.h"

/** Makes the parameter "weight" [V,H], a row for each token, split along V: each tp rank holds
 *  consecutive rows. `twin` is the other stage that holds this parameter, or -1. */
Tensor *vocabulary_embedding_new(Builder *b, const TransformerConfig *config, int twin);
/** The twin of the first stage's embedding: the last stage, if there are several and the head is
 *  tied; otherwise -1. */
int vocabulary_twin(const Builder *b, const TransformerConfig *config);
/** The table of a head: a new one if config->own_head; otherwise `embedding`, or a new copy of the
 *  embedding if `embedding` is NULL because another stage holds it. */
Tensor *vocabulary_head_new(Builder *b, const TransformerConfig *config, const void *embedding);

/** Architecture.loss of language models. */
Tensor *language_loss(Tensor *logits, Tensor *labels, int64_t rows_of_a_step, const Mesh *mesh);

/** The keys and values of earlier positions, for generating a text token by token. */
typedef struct KeyValueCache {
    Tensor *keys, *values; /**< [1,positions,width], the model's; NULL without a cache */
} KeyValueCache;

/** A cache for this rank's `width` columns of keys; an empty one if config->cached is 0. */
KeyValueCache key_value_cache_new(Builder *b, const TransformerConfig *config, int width);

/** Appends the rows of k and v [1,S,width] to the tape->batch.past earlier rows in the cache. Sets
 *  k and v to all rows that the cache then holds, [1,past+S,width]. Does nothing if there is no
 *  cache. */
void key_value_cache_add(const KeyValueCache *cache, Tensor **k, Tensor **v);
