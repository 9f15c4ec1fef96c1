/** @file
 * Parameters, and the layers that hold them. A Model owns all of it: weights and gradients lie in one arena
 * each, in the order in which the parameters were made, so that an optimiser runs over them in one pass and a
 * range of gradients can be reduced without a copy.
 */
#pragma once

#include "autograd/tape.h"

/** How a parameter's numbers are drawn; see model_finish(). */
typedef enum Initial {
    LINEAR_WEIGHT, /**< uniform in ±1/sqrt(in), as PyTorch's nn.Linear; `in` is the last dimension */
    EMBEDDING_WEIGHT, /**< N(0, 0.02), as BERT */
    ONES,             /**< a norm's weight */
    ZEROS,            /**< biases */
} Initial;

/** What a layer has declared. Belongs to the model. */
typedef struct Parameter {
    const char *name;    /**< "blocks.0.feed_forward.up.weight" */
    Shape shape;         /**< of the undivided parameter */
    Placement placement; /**< as the layer declared it */
    Initial initial;     /**< how its numbers are drawn */
    Range held; /**< which part of shape.size[placement.dim] this rank holds, when it is a shard */
    /** this rank's part of it; its numbers lie in the model's arena from model_finish() on */
    Tensor *value;
    struct Parameter *next; /**< in the order of making, or NULL */
} Parameter;

/** All parameters and layers of a model on this rank. */
typedef struct Model {
    Pool *pool;                  /**< that its tensors come from; the caller's */
    const Mesh *mesh;            /**< that it is split over; the caller's */
    uint64_t seed;               /**< of the initial values */
    Builder *builder;            /**< that layers are made with; names begin with nothing */
    Parameter *parameters;       /**< the first one, in the order of making; NULL: there is none */
    Parameter **last;            /**< where the next one is hung in */
    Buffer *weights, *gradients; /**< the arenas, made by model_finish() and laid out alike */
    /** numbers of each arena: the parameters lie in it one after the other, each padded to 64 bytes with zeros */
    int64_t arena_size;
    Buffer *rounded;      /**< the weights in 16 bits, or NULL */
    struct Piece *pieces; /**< memory of layers, names and builders, the last one first */
} Model;

/** A model without layers yet. Tensors come from `pool`, initial values from `seed`; `mesh` must outlive it. */
Model *model_new(Pool *pool, const Mesh *mesh, uint64_t seed);
/** Frees the model with all its layers, parameters and builders. */
void model_free(Model *model);

/** The same builder, but parameters made with it start as an embedding table does. */
Builder *for_embedding(Builder *b);

/** parameter() of balise.h with the initial values said. */
Tensor *parameter_with(Builder *b, const char *name, Shape shape, Placement placement,
                       Initial initial);

/** The name that parameters made with b begin with; dropout is keyed by it. */
const char *builder_path(Builder *b);

/** Ends the making of layers: allocates the arenas and draws the initial values. */
void model_finish(Model *model);

/** The operations of the next forward pass that begin with a parameter find `tape` by it. */
void model_use_tape(Model *model, Tape *tape);

Parameter *model_parameter(Model *model, const char *name); /**< NULL if there is none */

/** Numbers held on this rank. */
int64_t model_held(const Model *model);
/** Numbers of the undivided model. */
int64_t model_full(const Model *model);

/** Forgets the gradients of the step before. */
void model_clear_gradients(Model *model);

/** Makes the gradients of parameters that no operation used zero. Call it before the gradients are read. */
void model_complete_gradients(Model *model);

real *model_weights(Model *model);   /**< the numbers in the arena of the weights */
real *model_gradients(Model *model); /**< and those in the arena of the gradients */

/** Takes room from the pool for the weights in bf16: products in bf16 (see backend.h) then round each weight once a step. The
 *  weights themselves stay as they are. */
void model_keep_rounded(Model *model);

/** To be said after each change of weights that have been multiplied with. */
void model_weights_changed(Model *model);

/** Sets every parameter: element i of the undivided parameter becomes value(context, parameter, i). begin(context, parameter),
 * where it is not NULL, is called once before its elements. */
void model_fill(Model *model, void (*begin)(void *context, const Parameter *parameter),
                double (*value)(void *context, const Parameter *parameter, int64_t index),
                void *context);

/** The index in the undivided parameter of element `local` of this rank's part. */
int64_t parameter_global_index(const Parameter *parameter, int64_t local);

/** Zeroed memory that lives as long as the model. */
void *model_piece(Model *model, size_t bytes);

/** A builder of this model whose names begin with `path`. */
Builder *model_new_builder(Model *model, const char *path, Initial initial);
