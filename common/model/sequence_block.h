/** @file
 * The layers behind the SequenceBlock of balise.h: the block of BERT whose norms, dropouts and
 * residual sums take a shard of the positions (Korthikanti et al., arXiv:2205.05198, section 4.2).
 */
#pragma once

#include "model/model.h"

/** The probabilities of a block's dropouts. */
typedef struct SequenceDropout {
    double residual; /**< after the attention, and after the feed-forward layers */
    double inner;    /**< between the two feed-forward layers */
} SequenceDropout;

/** Makes the layers. The parameters have the names, shapes and placements of those of lab 7's
 *  block, so both begin with the same numbers. */
SequenceBlock *sequence_block_new(Builder *b, int hidden, int heads, int inner,
                                  SequenceDropout dropout);
