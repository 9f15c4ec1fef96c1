/* Lab 11: each replica reads its own rows, and all of them take the same step. */
#include "balise.h"

/* PyTorch's DistributedSampler: shuffle the rows, then deal them out to the replicas like cards. */
int64_t sampler_set_epoch(Sampler *sampler, int64_t epoch, const Mesh *mesh)
{
    int64_t rows = sampler->rows, dp = mesh->dp_degree, end = rows, count = 0;
    if (sampler->tail == PAD)
        end = (rows + dp - 1) / dp * dp;
    if (sampler->tail == DROP)
        end = rows / dp * dp;
    permutation(sampler->order, rows, sampler->seed, epoch);
    for (int64_t i = mesh->dp_rank; i < end; i += dp)
        sampler->mine[count++] = sampler->order[i % rows];
    return count;
}

/* Called during the backward pass, as soon as a bucket is full: start, do not wait. */
void bucket_ready(Bucket *bucket, const Mesh *mesh)
{
    bucket->pending = group_all_reduce_start(mesh->dp, bucket->gradients);
}

/* Called once, after the backward pass, to give every replica the mean. */
void buckets_finish(Bucket *buckets, int count, const Mesh *mesh)
{
    for (int i = 0; i < count; i++) {
        pending_wait(buckets[i].pending);
        scale(buckets[i].gradients, 1.0f / (float)mesh->dp_degree);
    }
}

/* Sums over the replicas; the caller divides by the count. */
void metrics_synchronise(Metrics *metrics, const Mesh *mesh)
{
    double sums[] = {metrics->loss_sum, metrics->correct, metrics->count};
    group_sum(mesh->dp, sums, 3);
    *metrics = (Metrics){sums[0], sums[1], sums[2]};
}
