/** @file
 * Lab 21: the parts of a language model that are split along the vocabulary.
 */
#pragma once

#include "base/run.h"
#include "grader/labs/lab.h"

/** The kinds of cases. */
enum {
    EACH_ALONE, /**< each function has inputs of its own, the two tables differ */
    TIED,       /**< a model with one table: embedding, head, loss, and one backward pass */
};

/** The functions of lab 21; the index in their labels. */
enum {
    EMBEDDING,     /**< vocabulary_embedding() */
    LOGITS,        /**< vocabulary_logits() */
    LOSS,          /**< vocabulary_parallel_cross_entropy() */
    ALL_FUNCTIONS, /**< all of them, in the backward pass of a tied model */
};
/** The names of these functions, for reports. */
static const char *const vocabulary_functions[] = {"vocabulary_embedding", "vocabulary_logits",
                                                   "vocabulary_parallel_cross_entropy",
                                                   N_("the tied model")};

enum { LARGE_LOGITS = 13 }; /**< a case's exponent if its logits are in the tens of thousands */

/** This rank's columns of random logits, for the loss alone. Large ones are all negative in the
 *  second model, to catch a maximum that starts from 0, and in all replicas but the first, to catch
 *  a maximum over the replicas. Subtracting the same amount from a whole row does not change the
 *  loss. */
Tensor *random_logits(Scenario *run, const char *key, int which, Shape shape);

/** Targets in the columns of each rank in turn; the last position has the last id as its target.
 *  Every fourth position has no target, nor has any position of the first sample if there are
 *  several samples. */
Tensor *random_targets(Scenario *run, const char *key, int V);

/** dy for a student's result y, which may have only this rank's columns. */
Tensor *random_gradient(Scenario *run, const char *key, const Tensor *y, Shape whole_shape);

/** Writes this rank's columns of logits [B,S,V] or of their gradient. */
void write_columns(Scenario *run, Check check, Label label, Tensor *x, int V);

/** In the judge: why numbers are wrong, before the mistakes that it replays. */
extern Finder *const vocabulary_reasons[];
/** In the judge: appends a line if ranks gather their logits. */
void vocabulary_ending(const struct Trial *t, char *text, size_t size);
