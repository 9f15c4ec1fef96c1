/** @file
 * A rank's tape: the operations of its first forward pass, and how the gradient flows back through
 * them.
 */
#pragma once

#include "grader/judge/report/verdict.h"
#include "grader/labs/labels.h"

enum { TAPE_TEXT = 128 }; /**< bytes of a text of a tape */

/** A tensor that an operation takes and that no operation of the pass has returned. */
typedef struct TapeInput {
    char name[TAPE_TEXT];                 /**< "up.weight", "x" */
    char shape[TAPE_TEXT], placement[32]; /**< "[18,24]", "shard(0)" */
} TapeInput;

/** An operation of a pass. */
typedef struct TapeRow {
    int number;         /**< from 1 */
    char line[64];      /**< "19", or "attention.c:28" in a file other than the lab's */
    char name[32];      /**< "linear" */
    char of[TAPE_TEXT]; /**< the numbers of the operations whose results it takes */
    char shape[TAPE_TEXT],
        placement[32];            /**< of its result or, backward, of the result's gradient */
    char to[2 * TAPE_TEXT];       /**< backward: where the gradient goes, "3, down.weight" */
    char with[2 * TAPE_TEXT];     /**< forward: its other arguments, "heads 2, factor 0.25" */
    int inputs;                   /**< forward: number of inputs */
    TapeInput input[MOST_INPUTS]; /**< what comes from outside the pass */
} TapeRow;

/** The first forward pass that a rank has recorded, and its backward pass. */
typedef struct TapePass {
    char where[2][LABEL_SIZE];       /**< "forward pass of the first layer, step 1", and backward */
    int forward, backward;           /**< numbers of rows */
    TapeRow row[2][RING_OPERATIONS]; /**< of each pass */
    char without[TAPE_TEXT]; /**< the numbers of operations that no gradient reaches, "2, 3" */
} TapePass;

/** Reads a rank's operations. `file` is the lab's. Free the result with free(). */
TapePass *tape_pass(const Calls *calls, int rank, const char *file);

/** Prints both passes as tables. */
void tape_print(FILE *out, Page page, const TapePass *pass);
