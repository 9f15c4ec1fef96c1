/** @file
 * The difference between two programs: the operations that a rank has recorded in a pass, and those
 * of the plain layer. What only moves numbers between ranks is left out of both.
 */
#pragma once

#include "grader/calls.h"

/** The forward operations of a pass, in order. */
typedef struct OperationList {
    const TapeOperation *operation; /**< [count] */
    int64_t count;                  /**< how many */
} OperationList;

/** How a rank's program first differs from the plain one. */
typedef struct ProgramDifference {
    char text[1200];     /**< a sentence with the line of the lab; both, if two are all */
    const void *address; /**< of the rank's operation that the first one is about, or NULL */
} ProgramDifference;

/** Compares two programs. @return false if they compute the same, up to the order of a sum's terms,
 *  or if the rank's program has a part that is not on its tape */
bool program_difference(OperationList rank, OperationList plain, ProgramDifference *difference);

/** A pass and its backward pass, on the ranks of a group and in the plain layer. */
typedef struct PassPrograms {
    OperationList forward[MAX_RANKS], back[MAX_RANKS]; /**< by place in the group */
    OperationList plain, plain_back;                   /**< the plain layer's */
    int ranks, own;  /**< how many ranks; the place of the one whose program is told */
    bool first;      /**< nothing that enters the pass comes from another pass of the step */
    double returned; /**< what the lab returned has this many times the right numbers, or 1 if it is
                          wrong otherwise; 0 if it is right or another pass returns it */
    bool input_gradient_is_wrong; /**< the gradient of what enters the pass */
    const char *parameter;        /**< whose gradient is wrong, or NULL */
    bool has_loops;               /**< the lab has loops over raw numbers */
} PassPrograms;

/** Finds the first operation of a pass that takes other numbers or has a wrong result; with
 *  `gradient`, the first one of the backward pass that returns a wrong gradient. Sets *is_open if the
 *  record does not show how it is wrong. @return whether there is one */
bool first_wrong_value(const PassPrograms *p, bool gradient, bool *is_open, char *text,
                       size_t size);
