/** @file
 * What tape.c and backward.c share: the parts of a Tape.
 */
#ifndef BALISE_AUTOGRAD_PARTS_H
#define BALISE_AUTOGRAD_PARTS_H

#include "autograd/tape.h"

enum { CHUNK = 256 };

typedef struct TensorChunk {
    Tensor tensor[CHUNK];
} TensorChunk;

typedef struct NodeChunk {
    Node node[CHUNK];
} NodeChunk;

struct Tape {
    Pool *pool;
    const Mesh *mesh;
    TapeBatch batch;
    bool recording;
    TensorChunk **tensor_chunks;
    NodeChunk **node_chunks;
    int64_t tensor_room, node_room, tensors, nodes;
    Node *last;
    GradientWatch watch;
    Witness witness;
};

/** Gives x's numbers back to the pool. */
void tape_release_value(Tensor *x);

#endif
