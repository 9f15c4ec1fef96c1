/** @file
 * The difference between two programs: the operations that a rank has recorded in a pass, and those
 * of the plain layer. What only moves numbers between ranks is left out of both.
 */
#pragma once

#include "grader/calls.h"

/** The forward operations of a pass, in order. */
typedef struct Program {
    const TapeOperation *operation; /**< [count] */
    int64_t count;                  /**< how many */
} Program;

/** Writes how the rank's program first differs from the plain one, with the line of the lab. If
 *  two differences make up all of it, writes both.
 *  @return false if they compute the same, up to the order of a sum's terms, or if the rank's
 *  program has a part that is not on its tape */
bool program_difference(Program rank, Program plain, char *text, size_t size);
