/** @file
 * What tape.c and backward.c share: the parts of a Tape.
 */
#pragma once

#include "autograd/tape.h"

enum { CHUNK = 256 }; /**< records that the arena grows by */

/** Records of one size, which never move. */
typedef struct Arena {
    char **chunks;       /**< [room / CHUNK], of CHUNK records each */
    int64_t room, count; /**< records there is room for, and those in use */
} Arena;

/** The parts of a Tape. */
struct Tape {
    Pool *pool;           /**< where its tensors' buffers come from; the caller's */
    const Mesh *mesh;     /**< the caller's */
    TapeBatch batch;      /**< of this pass */
    bool recording;       /**< see tape_record() */
    Arena tensors, nodes; /**< in the order of making */
    Node *last;           /**< the operation that was recorded last, or NULL */
    GradientWatch watch;  /**< see tape_watch() */
    Observer observer;    /**< see tape_observe() */
};

/** Gives x's numbers back to the pool. */
void tape_release_value(Tensor *x);
