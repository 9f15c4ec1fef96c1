/** @file
 * Lab 21: the parts of a language model that are split along the vocabulary.
 */
#pragma once

#include "base/run.h"
#include "grader/labs/lab.h"

/** The kinds of its cases. */
enum {
    EACH_ALONE, /**< each function has inputs of its own, the two tables differ */
    TIED,       /**< a model with one table: embedding, head, loss, and one backward pass */
};

/** Its functions; the index in a label. */
enum {
    EMBEDDING,     /**< vocabulary_embedding() */
    LOGITS,        /**< vocabulary_logits() */
    LOSS,          /**< vocabulary_parallel_cross_entropy() */
    ALL_FUNCTIONS, /**< all of them, in the backward pass of a tied model */
};
/** Their names, for reports. */
static const char *const vocabulary_functions[] = {"vocabulary_embedding", "vocabulary_logits",
                                                   "vocabulary_parallel_cross_entropy",
                                                   N_("the tied model")};
