/** @file
 * The lab's BERT: token embedding, N pre-LN residual blocks (Devlin et al., arXiv:1810.04805; pre-LN as
 * Megatron-LM), and a classifier on [CLS]. Assembled from whatever the slots provide: plain layers, the
 * reference's, the student's.
 */
#pragma once

#include "model/model.h"

/** The sizes of a BERT. */
typedef struct BertConfig {
    int vocabulary, hidden, layers, heads, classes; /**< V, H, blocks, A, classes of the answer */
    int positions;  /**< rows of learned positions; 0 for none, as in the lab */
    double dropout; /**< probability, in [0, 1) */
} BertConfig;

/** The layers of a BERT, and what they are assembled from. Belongs to the builder's model. */
typedef struct Bert Bert;

/** Are the sizes possible on `tp` ranks? Otherwise false with `problem`. */
bool bert_check(const BertConfig *config, int tp, Problem *problem);

/** The layers of a BERT of these sizes, which belong to the builder's model. Sizes must have passed bert_check(). */
Bert *bert_new(Builder *b, const BertConfig *config);

/** ids [B,S], mask [B,S] (1: a token) -> logits [B,classes], whole. Values are released a block at a time. */
Tensor *bert_forward(const Bert *bert, Tensor *ids, Tensor *mask, const Mesh *mesh);
