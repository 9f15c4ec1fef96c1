/** @file
 * What builder.c and model.c share: the parts of a Model.
 */
#pragma once

#include <stddef.h>

#include "model/model.h"

/** A layer, a name or a builder: what is made with the builder and freed with the model. */
typedef struct Piece {
    struct Piece *next;        /**< of the same model, or NULL */
    _Alignas(16) char bytes[]; /**< as many as were asked for, zeroed */
} Piece;

/** The parts of a Model. */
struct Model {
    Pool *pool;                  /**< where arenas come from */
    const Mesh *mesh;            /**< the caller's */
    uint64_t seed;               /**< of the initial values */
    Piece *pieces;               /**< all of them, the last one first */
    Parameter *first, **last;    /**< the parameters in order, and where the next one is hung in */
    Builder *root;               /**< whose names begin with nothing */
    Buffer *weights, *gradients; /**< the arenas, made by model_finish() */
    Buffer *rounded;             /**< the weights in 16 bits, or NULL */
    int64_t arena;               /**< numbers of each arena */
};

/** Zeroed memory that lives as long as the model. */
void *model_piece(Model *model, size_t bytes);

/** A builder of this model whose names begin with `path`. */
Builder *model_new_builder(Model *model, const char *path, Initial initial);
