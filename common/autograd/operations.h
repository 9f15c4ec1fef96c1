/** @file
 * The operations that balise.h does not declare: those behind its layers, and those of the kit's
 * own models. A differentiable operation checks shapes and placements, runs its kernel and records
 * its backward on the tape. Parameters are passed as tensors; results belong to the tape.
 */
#pragma once

#include "autograd/tape.h"

/** tanh, element by element. */
Tensor *tanh_of(Tensor *x);

/** PyTorch's LayerNorm over the last dimension; weight, bias [H]. */
Tensor *layer_norm_with(Tensor *x, Tensor *weight, Tensor *bias, double epsilon);

/** RMS norm over the last dimension (Zhang and Sennrich, arXiv:1910.07467):
 *  y = x / sqrt(mean of x² + epsilon) · weight [H]. */
Tensor *rms_norm(Tensor *x, Tensor *weight, double epsilon);

/** Dropout. The key of its mask is made from `name` and the batch's seed, step and draw. An element
 *  of the mask depends on the key and on its sample, position and global column. */
Tensor *dropout_with(Tensor *x, const char *name, double probability);

/** y[b,s] = x[b,s] + table[past + s]: x [B,S,H], table [positions,H] -> [B,S,H]. `past` comes from
 *  the tape's batch. past + S > positions is misuse. */
Tensor *add_positions(Tensor *x, Tensor *table);

/** The rows of x [B,S,H] that have a target: [1,N,H]. *targets [B,S], where NO_ID means no target,
 *  is replaced by the targets of these rows [1,N]. N is at least 1: without targets, the first row
 *  stays. */
Tensor *rows_with_targets(Tensor *x, Tensor **targets);

/** Causal attention(): q [B,S,heads·D]; k, v [B,T,heads·D] with T >= S, whose last S rows are the
 *  queries' own. Query s sees keys 0..T-S+s (Radford et al., 2018; Dao, arXiv:2307.08691). mask
 *  [B,T] is 0 for padding, or NULL if there is none. A query that sees only padding, as with
 *  padding on the left, gets zeros. T > S, with earlier keys and values from a cache, is for
 *  inference: it is misuse if a gradient is needed. */
Tensor *attention_causal(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor);

/** Rotary positions (Su et al., arXiv:2104.09864) of x [B,S,heads·D] for positions first, first +
 *  1, ...: rotates the pair of numbers k and k + D/2 of each head by position · rotary_speed().
 *  These are the pairs of Hugging Face and Megatron-LM; the paper pairs 2k and 2k + 1. An odd D is
 *  misuse. */
Tensor *rotary(Tensor *x, int heads, int64_t first, RotaryAngles angles);

/** Ends the run if x is not [B,S,heads·D]. */
void must_have_heads(const char *function, const Tensor *x, int heads);

/** Repeats each head of x [B,S,heads·D] `times` times, side by side, for the queries that share it
 *  (grouped-query attention: Ainslie et al., arXiv:2305.13245). */
Tensor *repeat_heads(Tensor *x, int heads, int times);

/** GPT-2's approximation of gelu() by tanh (Hendrycks and Gimpel, arXiv:1606.08415). Dropout does not
 *  do it in the same pass: none follows it in GPT-2. */
Tensor *gelu_tanh(Tensor *x);

/** y = gate · σ(gate) · up, element by element: the gate of SwiGLU (Shazeer, arXiv:2002.05202). */
Tensor *swiglu(Tensor *gate, Tensor *up);

/** The sum of -log softmax(logits)[label] over the rows, divided by `rows_per_step`: logits
 *  [B,classes], labels INT32 [B] -> [1]. `rows_per_step` is B (the result is then the mean), or
 *  the number of rows in all micro-batches of the step. `losses` [B] receives each row's loss; it
 *  may be NULL. */
Tensor *cross_entropy_mean(Tensor *logits, Tensor *labels, int64_t rows_per_step, real *losses);

/** Runs a segment with lab 19's recompute_forward(), and again in the backward pass with its
 *  recompute_backward(). Only x [B,S,H] and the result [B,S,H] of the first run are kept. `draw`
 *  numbers the calls of a segment in a pass, so each call draws its own masks; call 0 draws those
 *  of a run without recomputation. */
Tensor *recompute(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh);

/** From now on, group_all_reduce_start() on this group calls `sum`, which sums in place, and
 *  returns when `sum` has returned. Tensors that `sum` puts on the tape are released. NULL restores
 *  the usual sum. */
void group_sum_by(Group *group, void (*sum)(Group *group, Tensor *x));

/** A REAL tensor of the tape that holds the caller's `numbers`. `needs_gradient` says whether the
 * backward pass computes its gradient. */
Tensor *tape_reals(Tape *tape, Shape shape, Placement placement, const real *numbers,
                   bool needs_gradient);
/** The same for integers: ids, labels, a mask. Their placement is whole. */
Tensor *tape_ints(Tape *tape, Shape shape, const int32_t *numbers);

/** Copies x [1,S,W] after the first `past` rows of cache [1,room,W], which no tape owns; `past`
 *  comes from the tape's batch. Returns the rows that the cache then holds, [1,past+S,W]. Not
 *  differentiable: the tape must not record. */
Tensor *append_rows(const Tensor *cache, Tensor *x);
