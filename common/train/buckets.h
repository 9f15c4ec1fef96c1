/** @file
 * A model's gradients in buckets, reduced over the replicas during the backward pass (PyTorch's
 * DDP, Li et al., arXiv:2006.15704, section 3.2). A bucket is a range of the gradient arena, so no
 * copy is needed. A large embedding table has its own bucket, which is complete last. In such a
 * bucket, the replicas sum only the rows that some replica has used. Lab 14 decides after which
 * backward pass a bucket is reduced, and lab 11 reduces it.
 */
#pragma once

#include "comm/comm.h"
#include "model/model.h"

/** All buckets of a model, and the progress of a backward pass. */
typedef struct BucketSet BucketSet;

/** Splits the gradients of a finished model into buckets of whole parameters, each closed once it
 *  has at least `bytes`. Bucket 0 holds the parameters made last, and is complete first. */
BucketSet *bucket_set_new(Model *model, int64_t bytes);
/** Frees the set; the gradients belong to the model. */
void bucket_set_free(BucketSet *set);

/** Makes the next backward pass, on `tape`, hand complete buckets to bucket_filled(), in the same
 *  order on every rank. `pass` is the number of this pass, from 0; a step has `passes` of them. */
void bucket_set_begin(BucketSet *set, Tape *tape, int pass, int passes);

/** Call this after the last backward pass, which was on `tape`. Hands over the buckets of
 *  parameters that no operation used, then calls buckets_finish().
 *  @return the seconds that this took: the exposed part of the reduction */
double bucket_set_finish(BucketSet *set, Tape *tape);

/** Makes the bucket hold `gradients`, the tensor that the optimiser reads. Reports the error if lab
 *  11 has put another tensor there. */
void bucket_hold(Bucket *bucket, Tensor *gradients);

/* ---- rows of a table in use ---- */

/** Reduces only the used rows of an embedding table's gradient. A step touches few rows; those that
 *  any replica has touched are moved to the front, and only these are summed over the replicas. The
 *  sum is the same, because all other rows are zero everywhere. */
typedef struct TableRows TableRows;

/** Is it worthwhile to send only some rows of this parameter's gradient? True for a large table
 *  whose rows are only looked up, if the backend looks for zeros. */
bool has_table_rows(const Tensor *x);

/** Makes a TableRows for a parameter that has_table_rows(). The parameter must outlive it; free it
 *  with table_rows_free(). */
TableRows *table_rows_new(Tensor *parameter);
/** Frees it, but not the parameter. NULL is allowed. */
void table_rows_free(TableRows *t);

/** Moves the rows of the parameter's gradient that are nonzero on some rank of the group to the
 *  front. Collective.
 *  @return the length of the front part; the whole length if most rows are in use and nothing
 *  moved */
int64_t table_rows_pack(TableRows *t, Group *group);

/** Moves the rows back, and sets the rows between them to zero. */
void table_rows_unpack(TableRows *t);
