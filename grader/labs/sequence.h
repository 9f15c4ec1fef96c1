/** @file
 * Lab 18: the pairs along the sequence, blocks on a shard of the positions, and the sum of the
 * norms' gradients.
 */
#pragma once

#include "grader/labs/lab.h"

/** The kinds of cases. */
typedef enum SequenceKind {
    SEQUENCE_PAIRS,  /**< pairs around feed-forward layers, without norms and outer dropout */
    SEQUENCE_BLOCKS, /**< a model of blocks */
} SequenceKind;

/** The indices of labels. */
enum {
    GATHER_SEQUENCE,         /**< of the first call; the index of the next is CALL_PARTS larger */
    REDUCE_SCATTER_SEQUENCE, /**< likewise */
    CALL_PARTS,              /**< how many parts a call of the pairs has */
    MOST_CALLS = 8,          /**< of the pairs in a pass */
    ALL_POSITIONS = CALL_PARTS * MOST_CALLS, /**< all calls or blocks of a pass */
    NORM_GRADIENTS,                          /**< sum_norm_gradients() */
    FIRST_BLOCK,                             /**< of a model; the next blocks follow */
};

/** The label with one of these indices. */
static inline Label sequence_label(What what, int index, int step)
{
    return label_of(what, A_SEQUENCE, index, step);
}

/** What a rank does in a case. */
ScenarioFunction run_sequence;

/** In the judge: compares what the ranks multiply and keep with 1/tp of what one rank does. */
void compare_work_of_positions(struct Trial *t, const Entry *want);
/** In the judge: the terms that a rank contributes to the sum of its own; see Examination. */
Summand sequence_summand(Scenario *run, const Entry *want, int of, int on);
/** In the judge: why numbers are wrong. */
extern Finder *const sequence_reasons[];
