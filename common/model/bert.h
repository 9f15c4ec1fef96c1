/** @file
 * The labs' BERT: token embedding, N pre-LN residual blocks (Devlin et al., arXiv:1810.04805;
 * pre-LN as in Megatron-LM), and a classifier on [CLS]. Assembled from the layers in the slots:
 * plain layers, the reference's, or the student's.
 */
#pragma once

#include "model/model.h"

/** The sizes of a BERT. */
typedef struct BertConfig {
    int vocabulary, hidden, layers, heads, classes; /**< V, H, blocks, A, number of classes */
    int positions;  /**< rows of learned positions; 0 for none, as in the labs */
    double dropout; /**< probability, in [0, 1) */
} BertConfig;

/** A BERT's layers. Belongs to the builder's model. */
typedef struct Bert Bert;

/** Are these sizes possible on `tp` ranks? Otherwise returns false with `problem`. */
bool bert_check(const BertConfig *config, int tp, Problem *problem);

/** Makes the layers of a BERT; they belong to the builder's model. Sizes must have passed
 *  bert_check(). */
Bert *bert_new(Builder *b, const BertConfig *config);

/** ids [B,S], mask [B,S] (1: a token) -> logits [B,classes], whole. Releases values after each
 *  block. */
Tensor *bert_forward(const Bert *bert, Tensor *ids, Tensor *mask, const Mesh *mesh);
