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

/** The next backward pass on `tape` gives full buckets to bucket_ready(), the same ones in the same order on
 * every rank. */
void bucket_set_begin(BucketSet *set, Tape *tape);

/** After the backward pass: gives out the buckets of parameters that no operation used, and calls
 * buckets_finish().
 *  @return the seconds that this took: what of the reduction the backward pass did not hide */
double bucket_set_finish(BucketSet *set, Tape *tape);

/** Back to `gradients`, which the optimiser reads; where balise 11 has put another tensor in its place that is said. */
void bucket_hold(Bucket *bucket, Tensor *gradients);
