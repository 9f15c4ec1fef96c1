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

/** Which layers of a BERT a rank holds: all of them, or those of a stage of a pipeline. */
typedef struct BertPart {
    bool embedding;  /**< and the positions */
    Range blocks;    /**< of 0..layers-1 */
    bool classifier; /**< behind the last block */
} BertPart;

/** All layers. */
BertPart bert_whole(const BertConfig *config);

/** Are the sizes possible on `tp` ranks? Otherwise false with `problem`. */
bool bert_check(const BertConfig *config, int tp, Problem *problem);

/** The layers of this part of a BERT, which belong to the builder's model. Sizes must have passed bert_check(). */
Bert *bert_new(Builder *b, const BertConfig *config, BertPart part);

/** ids [B,S] -> [B,S,H], with positions where there are any. The part must hold the embedding. */
Tensor *bert_embed(const Bert *bert, Tensor *ids, const Mesh *mesh);
/** x [B,S,H], mask [B,S] (1: a token) -> [B,S,H]: the blocks of the part. Values are released a block at a time. */
Tensor *bert_run_blocks(const Bert *bert, Tensor *x, Tensor *mask, const Mesh *mesh);
/** x [B,S,H] -> logits [B,classes], whole. The part must hold the classifier. */
Tensor *bert_classify(const Bert *bert, Tensor *x, const Mesh *mesh);
/** ids [B,S], mask [B,S] -> logits [B,classes]: all of these, of a whole BERT. */
Tensor *bert_forward(const Bert *bert, Tensor *ids, Tensor *mask, const Mesh *mesh);
