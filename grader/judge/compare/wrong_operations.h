/** @file
 * Operations that the layers of a suspect are made of: differentiable, in whole tensors of the judge's own run.
 */
#pragma once

#include "autograd/operations.h"
#include "grader/protocol.h"

/** y = factor x backwards only: x goes on as it is, its gradient is multiplied. */
Tensor *with_gradient_times(Tensor *x, double factor);

/** Dropout as if each of `ranks` drew the mask of the first columns for its own, in training. */
Tensor *dropout_repeated(Tensor *x, const char *name, double probability, int ranks);

/** y = f(x), number by number. */
typedef struct Activation {
    double (*value)(double x), (*slope)(double x); /**< f(x) and f'(x) */
} Activation;
/** Those that students take instead of GELU. */
extern const Activation relu, tanh_itself, silu, gelu_by_tanh;
/** The activation of x; its backward multiplies by the slope. */
Tensor *activated(Tensor *x, const Activation *activation);

/** [B,S,H] -> [B,H]: `factor` times the sum of the positions from `first` on. */
Tensor *pooled(Tensor *x, int64_t first, double factor);

/** Which columns ranks have that should have consecutive ones. */
typedef enum Rearranged {
    DEALT_OUT, /**< rank r has every ranks-th one, from the r-th on */
    OF_FIRST,  /**< each has those of the first */
    BACKWARDS, /**< its own, but of the gradient those of the first */
} Rearranged;
/** x with its columns rearranged. */
Tensor *rearranged(Tensor *x, int ranks, Rearranged how);

/** A mask [B,S] with as many ones in each sample, at the beginning. */
Tensor *as_length(Tensor *mask);

/** From now on the judge's operations make this mistake (NO_MISTAKE: none), until suspect_end(). */
void suspect_begin(int mistake, const Case *c);
/** The operations are right again. */
void suspect_end(void);
