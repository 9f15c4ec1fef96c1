/** @file
 * Clipping by the norm of all gradients together.
 */
#pragma once

#include "comm/comm.h"
#include "model/model.h"

/** The norm of the gradient of the undivided model: every shard of a sharded parameter counts once, and so does a parameter
 *  that each rank holds in full (Megatron-LM's clip_grad_norm). Collective over the ranks that split the model.
 *  \f[ \mathrm{norm} = \sqrt{ \textstyle\sum_p \sum_i g_{p,i}^2 } \f] */
double gradient_norm(Model *model);

/** PyTorch's clip_grad_norm_: multiplies all gradients by \f$ \mathrm{most} / (\mathrm{norm} + 10^{-6}) \f$ where that is below 1. */
void clip_gradients(Model *model, double norm, double most);
