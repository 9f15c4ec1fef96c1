/** @file
 * The rules of placement: which value goes into which function, and what comes out (DTensor's Shard, Replicate
 * and Partial, and the copied value of Megatron's f). A broken rule goes to misplaced(); what the function then
 * returns is what it would have been, so that a shard stays a shard. With one rank in the tp group everything
 * is whole and no rule is asked.
 */
#pragma once

#include "autograd/tape.h"

/** Is the model of this tape split over several ranks at all? */
bool is_split(const Tape *tape);

/** Refuses a weight in parts of different sizes: what is computed with them cannot be joined. */
void must_be_cut_evenly(const Tape *tape, const char *function, const Tensor *weight);

/** Of x W^T. A weight in shard(0) gives columns, shard(1) a partial sum of an x that is cut alike. */
Placement place_linear(const Tape *tape, const Tensor *x, const Tensor *weight);
/** Of looked-up rows: a table in shard(0) gives a partial sum, in shard(1) columns. */
Placement place_lookup(const Tape *tape, const Tensor *weight, int rank_of_result);
/** Of a function that joins x and y number by number: both must be the same to the ranks. */
Placement place_alike(const Tape *tape, const char *function, const Tensor *x, const Tensor *y);

/** For a function that works on each number by itself and is not linear, so that a partial sum makes no sense. */
Placement place_not_partial(const Tape *tape, const char *function, const Tensor *x);

/** For a function that needs the whole of each row on every rank. */
Placement place_whole(const Tape *tape, const char *function, const Tensor *x);

/** [B,S,H] -> [B,H] */
Placement place_first_token(const Tape *tape, const Tensor *x);

/** Of f: x must be whole, and becomes copied. */
Placement place_duplication(const Tape *tape, const Tensor *x);
/** Of g: x must be a partial sum, and becomes whole. */
Placement place_all_reduce(const Tape *tape, const Tensor *x);
/** Of the gather along `dim`: x must be a shard of it, and becomes whole. */
Placement place_all_gather(const Tape *tape, const Tensor *x, int dim);
