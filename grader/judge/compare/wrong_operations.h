/** @file
 * The operations in a suspect's layers: differentiable, on whole tensors of the judge's own run.
 */
#pragma once

#include "autograd/operations.h"
#include "grader/protocol.h"

/** Declares an operation that the judge replaces (the linker's --wrap), and its replacement. */
#define WRAPPED(type, name, ...)                                                                   \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

/** Returns x unchanged, but multiplies its gradient by `factor`. */
Tensor *with_gradient_times(Tensor *x, double factor);

/** Dropout in training as if each of `ranks` drew the mask of the first columns for its own
 *  columns. */
Tensor *dropout_repeated(Tensor *x, const char *name, double probability, int ranks);

/** Dropout in training as if each of `ranks` drew the masks of the first positions for its own
 *  positions. */
Tensor *dropout_of_first_positions(Tensor *x, const char *name, double probability, int ranks);

/** Mistakes about which columns a rank has. It should have consecutive ones, in rank order. */
typedef enum Rearranged {
    DEALT_OUT,          /**< rank r has every `ranks`-th column, from column r on */
    OF_FIRST,           /**< each has the columns of the first rank */
    OF_WORLD_RANK,      /**< each has the columns of its rank in the world, modulo `ranks` */
    BACKWARDS,          /**< each has its own, but gets the gradient of the first rank's columns */
    OWN_ONLY_BACKWARDS, /**< each has its own; only those of the first get a gradient */
} Rearranged;
/** x with its columns rearranged. */
Tensor *rearranged(Tensor *x, int ranks, Rearranged how);

/** Lab 18: x W^T by `multiply`, with the current mistake: at each rank's positions, only that
 *  rank's columns are summed, or have a gradient. */
Tensor *linear_on_own_positions(Tensor *x, Tensor *weight,
                                Tensor *(*multiply)(Tensor *x, Tensor *weight));

/** Lab 18: the norm of x; its weights get the gradients of the first rank's positions alone. */
Tensor *norm_with_gradients_of_first(const LayerNorm *layer, Tensor *x,
                                     Tensor *(*norm)(const LayerNorm *layer, Tensor *x));

/** A mask [B,S] with the ones of each sample moved to its beginning. */
Tensor *as_length(Tensor *mask);

/** Makes the judge's operations make this mistake (NO_MISTAKE: none) until suspect_end(). */
void suspect_begin(int mistake, const Case *c);
/** Makes the operations correct again. */
void suspect_end(void);
/** Returns the mistake that the operations make, and sets *c to the case. */
int mistake_now(const Case **c);
