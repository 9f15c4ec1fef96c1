/** @file
 * Parameters, and the layers that hold them. A Model owns both. Weights and gradients are in one
 * arena each, in the order in which the parameters were made, so an optimiser updates them in
 * one pass and a range of gradients can be reduced without a copy.
 */
#pragma once

#include "autograd/tape.h"

/** Numbers that a layer has declared, but not as a parameter; see model_state(). */
typedef struct State {
    Tensor tensor;      /**< has numbers from model_finish() on */
    struct State *next; /**< the state made before it, or NULL */
} State;

/** All parameters and layers of a model on this rank. */
typedef struct Model {
    Pool *pool;                  /**< provides its tensors' memory; the caller's */
    const Mesh *mesh;            /**< the ranks that it is split over; the caller's */
    uint64_t seed;               /**< of the initial values */
    Builder *builder;            /**< for making layers; its names have no prefix */
    Parameter *parameters;       /**< the first parameter made, or NULL */
    Parameter **last;            /**< where to link the next one */
    void *names;                 /**< of the parameters; see names.h */
    Buffer *weights, *gradients; /**< the arenas, from model_finish() on; same layout */
    /** numbers in each arena: the parameters one after the other, each padded with zeros to a
     *  multiple of 16 numbers */
    int64_t arena_size;
    Buffer *rounded;      /**< see model_keep_rounded(); or NULL */
    State *states;        /**< see model_state(), newest first */
    struct Piece *pieces; /**< memory of layers, names and builders, newest first */
} Model;

/** Makes a model without layers. Tensors come from `pool`, initial values from `seed`; `mesh` must
 *  outlive the model. */
Model *model_new(Pool *pool, const Mesh *mesh, uint64_t seed);
/** Frees the model with all its layers, parameters and builders. */
void model_free(Model *model);

/** The same builder, but its parameters start like an embedding table. */
Builder *for_embedding(Builder *b);

/** parameter() of balise.h with explicit initial values. */
Tensor *parameter_with(Builder *b, const char *name, Shape shape, Placement placement,
                       Initial initial);

/** Numbers that are not a parameter, such as a cache; model_finish() sets them to zero. They live
 *  as long as the model (PyTorch's register_buffer). `shape` is the shape of this rank's part. */
Tensor *model_state(Builder *b, Shape shape);

/** The prefix of the names of parameters made with b. It is also the name of a dropout layer's
 *  masks. */
const char *builder_path(Builder *b);

/** Ends the making of layers: allocates the arenas and draws the initial values. */
void model_finish(Model *model);

/** Makes operations on parameters record on `tape`. */
void model_use_tape(Model *model, Tape *tape);

Parameter *model_parameter(Model *model, const char *name); /**< NULL if there is none */

/** The number of weights that this rank holds. */
int64_t model_held(const Model *model);
/** The number of weights of this rank's stage, with its parameters in full. A copy of a tied
 *  parameter does not count; see parameter_is_copy(). */
int64_t model_full(const Model *model);

/** Clears the gradients of the previous step. The next ones are partial sums: see
 *  Parameter.partial. */
void model_clear_gradients(Model *model);

/** The gradients in `part` of the arena are not partial sums over `axis` any more. */
void model_gradients_added(Model *model, Range part, Axis axis);

/** Reports the first gradient that is still a partial sum over an Axis of `axes`. Call it for all axes before
 *  the optimiser's step. `over_dp` should have added the replicas' terms. */
void model_must_be_added(const Model *model, unsigned axes, const char *over_dp);

/** Sets to zero the gradients of parameters that no operation used. Call it before reading
 *  gradients. */
void model_complete_gradients(Model *model);

real *model_weights(Model *model);   /**< the arena of the weights */
real *model_gradients(Model *model); /**< the arena of the gradients */

/** Allocates memory for a copy of the weights in 16 bits, so products in BF16 or FP16 (see
 *  backend.h) round each weight once per step. The weights themselves stay as they are. */
void model_keep_rounded(Model *model);

/** Call this after each change of weights that were already used in products. */
void model_weights_changed(Model *model);

/** Sets every parameter: element i of the full parameter becomes value(context, parameter, i).
 * Unless `begin` is NULL, calls begin(context, parameter) once before the elements of each
 * parameter. */
void model_fill(Model *model, void (*begin)(void *context, const Parameter *parameter),
                double (*value)(void *context, const Parameter *parameter, int64_t index),
                void *context);

/** Does an earlier stage hold this parameter too? Then only that stage saves it and counts it in
 *  sizes and norms. */
bool parameter_is_copy(const Parameter *parameter, const Mesh *mesh);

/** Adds up gradients that are partial sums over the stages: those of tied parameters, which two stages
 *  hold. Call it once a step, when this stage's gradients are complete. Collective over the stages. */
void model_sum_tied(Model *model);

/** The index in the full parameter of element `local` of this rank's part. */
int64_t parameter_global_index(const Parameter *parameter, int64_t local);

/** Allocates zeroed memory that lives as long as the model. */
void *model_piece(Model *model, size_t bytes);

/** Makes a builder of this model whose names begin with `path`. */
Builder *model_new_builder(Model *model, const char *path, Initial initial);
