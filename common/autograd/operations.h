/** @file
 * The differentiable operations behind those functions of balise.h that take a layer. Each checks
 * shapes and placements, runs its kernel and records its backward on the tape. Parameters are
 * passed as tensors; results belong to the tape.
 */
#pragma once

#include "autograd/tape.h"

/** y [..,out] = x [..,in] · weight [out,in]^T + bias [out]; bias may be NULL. linear() of balise.h
 * is this without bias. A bias with a weight in shard(1) is an error: each rank would add it. */
Tensor *linear_with_bias(Tensor *x, Tensor *weight, Tensor *bias);

/** PyTorch's LayerNorm over the last dimension; weight, bias [H]. */
Tensor *layer_norm_with(Tensor *x, Tensor *weight, Tensor *bias, double epsilon);

/** Dropout, drawn by (seed, step, name) of the batch and by sample, position and global column. */
Tensor *dropout_with(Tensor *x, const char *name, double probability);

/** y [B,S,H] = x [B,S,H] + row s of table [positions,H] for position s. S > positions is misuse. */
Tensor *add_positions(Tensor *x, Tensor *table);

/** The sum of -log softmax(logits)[label] over the rows, divided by `rows_per_step`: logits
 *  [B,classes], labels INT32 [B] -> [1]. `rows_per_step` is B, so that this is the mean, or the
 *  rows of all micro-batches of the step. `losses` [B] receives each row's loss; it may be NULL. */
Tensor *cross_entropy_mean(Tensor *logits, Tensor *labels, int64_t rows_per_step, real *losses);

/** A tensor of the tape that holds the caller's `numbers`. A REAL one may need a gradient. */
Tensor *tape_reals(Tape *tape, Shape shape, Placement placement, const real *numbers,
                   bool needs_gradient);
/** The same for integers: ids, labels, a mask. Their placement is whole. */
Tensor *tape_ints(Tape *tape, Shape shape, const int32_t *numbers);

/** Copies x [1,S,W] behind the first `past` rows of cache [1,room,W], which no tape owns; `past` is
 *  that of the tape's batch. Returns the rows that the cache then holds, [1,past+S,W]. Not
 *  differentiable: the tape must not record. */
Tensor *append_rows(const Tensor *cache, Tensor *x);
