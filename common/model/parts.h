/** @file
 * What builder.c and model.c share: the parts of a Model.
 */
#ifndef BALISE_MODEL_PARTS_H
#define BALISE_MODEL_PARTS_H

#include <stddef.h>

#include "model/model.h"

/** A layer, a name or a builder: what is made with the builder and freed with the model. */
typedef struct Piece {
    struct Piece *next;
    _Alignas(16) char bytes[];
} Piece;

struct Model {
    Pool *pool;
    const Mesh *mesh;
    uint64_t seed;
    Piece *pieces;
    Parameter *first, **last;
    Builder *root;
    Buffer *weights, *gradients;
    Buffer *rounded; /* the weights in bf16, or NULL */
    int64_t arena;
};

/** Zeroed memory that lives as long as the model. */
void *model_piece(Model *model, size_t bytes);

/** A builder of this model whose names begin with `path`. */
Builder *model_new_builder(Model *model, const char *path, Initial initial);

#endif
