/** @file
 * The gradients of a model in buckets, reduced over the replicas while the backward pass goes on (PyTorch's
 * DDP, Li et al., arXiv:2006.15704, section 3.2): a bucket is a range of the gradient arena, so nothing is
 * copied; of a large embedding table, whose bucket is full last, it is the rows that some replica has used. What is done with a bucket is balise 11's.
 */
#pragma once

#include "comm/comm.h"
#include "model/model.h"

/** All buckets of a model, and how far a backward pass has come with them. */
typedef struct BucketSet BucketSet;

/** Cuts the gradients of a finished model into buckets of `bytes` or a little more. A bucket holds whole
 * parameters; bucket 0 is that of the last ones made, which is full first. */
BucketSet *bucket_set_new(Model *model, int64_t bytes);
/** Frees the set; the gradients are the model's. */
void bucket_set_free(BucketSet *set);

/** The next backward pass on `tape` gives full buckets to bucket_ready(), in the same order on every rank. */
void bucket_set_begin(BucketSet *set, Tape *tape);

/** After the backward pass: gives out the buckets of parameters that no operation used, and calls
 * buckets_finish().
 *  @return the seconds that this took: what of the reduction the backward pass did not hide */
double bucket_set_finish(BucketSet *set, Tape *tape);

/** Back to `gradients`, which the optimiser reads; where balise 11 has put another tensor in its place that is said. */
void bucket_hold(Bucket *bucket, Tensor *gradients);

/* ---- of a table the rows in use ---- */

/** A table whose gradient is packed and unpacked, and which rows of it are in use: of the gradient of an embedding table, of which a step
 *  touches few rows, those that any replica has touched are brought to the front, so that they alone are summed over the replicas. The sum is
 *  the same: all others are zeros everywhere. */
typedef struct TableRows TableRows;

/** Is the gradient of this parameter one of which it pays to send some rows only? Tables have rows looked up, and many of them. */
bool has_table_rows(const Tensor *parameter);

/** For a parameter that has_table_rows(), which must outlive it; to be freed with table_rows_free(). */
TableRows *table_rows_new(Tensor *parameter);
/** Frees it; the parameter stays. NULL is allowed. */
void table_rows_free(TableRows *t);

/** Brings together the rows of the parameter's gradient that are not zeros on some rank of the group. Collective.
 *  @return how many numbers the gradient has in front now; all that it has, where most rows are in use: nothing moved then */
int64_t table_rows_pack(TableRows *t, Group *group);

/** Puts the rows where they were; what lies between them is zeros again. */
void table_rows_unpack(TableRows *t);
