/** @file
 * What tape.c and backward.c share: the parts of a Tape.
 */
#pragma once

#include "autograd/tape.h"

enum { CHUNK = 256 }; /**< records that the arena grows by */

/** A piece of the arena of tensors; they never move. */
typedef struct TensorChunk {
    Tensor tensor[CHUNK]; /**< in the order of making */
} TensorChunk;

/** A piece of the arena of operations. */
typedef struct NodeChunk {
    Node node[CHUNK]; /**< in the order of recording */
} NodeChunk;

/** The parts of a Tape. */
struct Tape {
    Pool *pool;                                     /**< where its tensors' buffers come from; the caller's */
    const Mesh *mesh;                               /**< the caller's */
    TapeBatch batch;                                /**< of this pass */
    bool recording;                                 /**< see tape_record() */
    TensorChunk **tensor_chunks;                    /**< [tensor_room / CHUNK] */
    NodeChunk **node_chunks;                        /**< [node_room / CHUNK] */
    int64_t tensor_room, node_room, tensors, nodes; /**< records there is room for, and those in use */
    Node *last;                                     /**< the operation that was recorded last, or NULL */
    GradientWatch watch;                            /**< see tape_watch() */
    Witness witness;                                /**< see tape_witness() */
};

/** Gives x's numbers back to the pool. */
void tape_release_value(Tensor *x);
