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
    bool is_own;         /**< an operation of the lab's own is in the place of one of the layer's:
                              what it computes is not on the tape */
} ProgramDifference;

/** Compares two programs. @return false if they compute the same, up to the order of a sum's terms,
 *  or if the rank's program has a part that is not on its tape */
bool program_difference(OperationList rank, OperationList plain, ProgramDifference *difference);
