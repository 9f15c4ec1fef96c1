/* Lab 17: ZeRO stage 1. Each replica keeps the optimiser's state for its part of the weights only. */
#include "balise.h"

Range optimizer_part(int64_t count, int k, int n)
{
    return (Range){count * k / n, count * (k + 1) / n};
}

static Tensor *own_part(Tensor *x, const Mesh *mesh)
{
    Range mine = optimizer_part(tensor_count(x), mesh->dp_rank, mesh->dp_degree);
    return slice(x, mine.begin, mine.end);
}

void reduce_scatter_gradients(Tensor *gradients, const Mesh *mesh)
{
    group_reduce_scatter_parts(mesh->dp, gradients, optimizer_part);
    scale(own_part(gradients, mesh), 1.0f / (float)mesh->dp_degree);
}

void squares_over_parts(double *shards, double *whole, const Mesh *mesh)
{
    group_sum(mesh->dp, shards, 1);
    group_sum(mesh->dp, whole, 1);
}

void sharded_step(Optimizer *optimizer, Tensor *weights, Tensor *gradients, const Mesh *mesh)
{
    optimizer_update(optimizer, own_part(weights, mesh), own_part(gradients, mesh));
    group_all_gather_parts(mesh->dp, weights, optimizer_part);
}
