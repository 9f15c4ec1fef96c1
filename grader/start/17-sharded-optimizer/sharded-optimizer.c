/* Lab 17: ZeRO stage 1. Each replica keeps the optimiser's state for its part of the weights only. */
#include "balise.h"

/* Part k of n of the numbers 0..count-1: replica k updates these weights. */
Range optimizer_part(int64_t count, int k, int n)
{
    TODO(17); /* where part k begins and ends, for any count and n */
}

/*  gradients [P], of this replica -> in its own part, the mean over the replicas  */
void reduce_scatter_gradients(Tensor *gradients, const Mesh *mesh)
{
    TODO(17); /* the sum of each part goes to one replica only; then the mean */
}

/* For clipping: the sums of squares over this replica's part -> those over all parts. */
void squares_over_parts(double *shards, double *whole, const Mesh *mesh)
{
    TODO(17); /* who has the squares of the other parts? */
}

/*  weights [P], the same on all replicas -> the same after the step  */
void sharded_step(Optimizer *optimizer, Tensor *weights, Tensor *gradients, const Mesh *mesh)
{
    TODO(17); /* update your own part; then every replica needs all parts */
}
