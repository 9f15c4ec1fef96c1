/** @file
 * The operations in a suspect's layers: differentiable, on whole tensors of the judge's own run.
 */
#pragma once

#include "autograd/operations.h"
#include "grader/protocol.h"

/** Returns x unchanged, but multiplies its gradient by `factor`. */
Tensor *with_gradient_times(Tensor *x, double factor);

/** Mistakes about which columns a rank has. It should have consecutive ones, in rank order. */
typedef enum Rearranged {
    OF_FIRST,           /**< each has the columns of the first rank */
    OF_WORLD_RANK,      /**< each has the columns of its rank in the world, modulo `ranks` */
    OWN_ONLY_BACKWARDS, /**< each has its own; only those of the first get a gradient */
} Rearranged;
/** x with its columns rearranged. */
Tensor *rearranged(Tensor *x, int ranks, Rearranged how);

/** Makes the judge's operations make this mistake (NO_MISTAKE: none) until suspect_end(). */
void suspect_begin(int mistake, const Case *c);
/** Makes the operations correct again. */
void suspect_end(void);
/** Returns the mistake that the operations make, and sets *c to the case. */
int mistake_now(const Case **c);
