/** @file
 * The placement rules: which placements a function accepts, and which one its result has (DTensor's
 * Shard, Replicate and Partial, and the copied value of Megatron's f). A broken rule is reported to
 * misplaced(). If the run then continues (in grading), the function returns the placement that its
 * result would have had, so a shard stays a shard; or UNKNOWN if none fits. If the tp group has one
 * rank, everything is whole and no rule applies.
 */
#pragma once

#include "autograd/tape.h"

/** Is the model of this tape split over several ranks? */
bool is_split(const Tape *tape);

/** Rejects a weight with shards of different sizes: the results could not be joined. */
void must_be_cut_evenly(const Tape *tape, const char *function, const Tensor *weight);

/** The placement of x W^T. A weight split along its last dimension gives a partial sum, and needs x
 *  split in the same way; a weight split along another dimension gives this rank's columns. */
Placement place_linear(const Tape *tape, const Tensor *x, const Tensor *weight);

/** linear()'s HINT for an x that is not split and a weight that is split along its inputs. */
extern const char *const linear_takes_shard;

/** The placement of x + bias: x holds this rank's columns if the bias is split; otherwise x is
 *  whole, not copied, or holds this rank's rows (see place_rows()). */
Placement place_add_bias(const Tape *tape, const Tensor *x, Tensor *bias);
/** The placement of looked-up rows: a table in shard(0) gives a partial sum, one in shard(1) this
 *  rank's columns. */
Placement place_lookup(const Tape *tape, const Tensor *weight, int rank_of_result);
/** The placement of an element-wise function of x and y: both must have the same placement. */
Placement place_alike(const Tape *tape, const char *function, const Tensor *x, const Tensor *y);

/** For a nonlinear element-wise function, which must not be applied to a partial sum. */
Placement place_not_partial(const Tape *tape, const char *function, const Tensor *x);

/** For a function of each head at each position: x is whole, or holds this rank's heads of all
 *  positions. */
Placement place_heads(const Tape *tape, const char *function, const Tensor *x);

/** For a function of each row with weights that every rank holds: x is whole, or holds this rank's
 *  rows. In the second case, the gradients of the weights are partial sums, so place_rows() marks
 *  `weights`. */
Placement place_rows(const Tape *tape, const char *function, const Tensor *x,
                     Tensor *const *weights, int count);

/** For a function that needs whole rows on every rank. */
Placement place_whole(const Tape *tape, const char *function, const Tensor *x);

/** The placement of the maxima of rows: unknown if x is split by columns, because each rank has the
 *  maxima of its own columns. */
Placement place_row_max(const Tape *tape, const Tensor *x);
/** The placement of sums over rows: a partial sum if x is split by columns. */
Placement place_row_sum(const Tape *tape, const char *function, const Tensor *x);
/** Is x split along its last dimension, or is its placement unknown? */
bool may_be_columns(const Tensor *x);

/** [B,S,H] -> [B,H] */
Placement place_first_token(const Tape *tape, const Tensor *x);

/** f: x must be whole; the result is copied. */
Placement place_duplication(const Tape *tape, const Tensor *x);
/** g: x must be a partial sum; the result is whole. */
Placement place_all_reduce(const Tape *tape, const Tensor *x);
/** The gather along `dim`: x must be a shard along it; the result is whole. */
Placement place_all_gather(const Tape *tape, const Tensor *x, int dim);
/** The gather of the positions: x must be a shard of them; the result is copied. */
Placement place_gather_sequence(const Tape *tape, const Tensor *x);
/** The reduce-scatter: x must be a partial sum; the result is a shard of the positions. */
Placement place_reduce_scatter_sequence(const Tape *tape, const Tensor *x);
/** The scatter along `dim`: x must be whole; the result is a shard along it. */
Placement place_scatter(const Tape *tape, const Tensor *x, int dim);
/** Part k of x along `dim`: the placement is unknown, because ranks may take different parts. */
Placement place_part(const Tape *tape, const Tensor *x, int dim);
/** x[..,i,..] along `dim`, along which x must not be split. */
Placement place_slice(const Tape *tape, const Tensor *x, int dim);
