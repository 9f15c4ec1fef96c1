/* Lab 14: the grid in three dimensions, and what a step sums over each of its groups. */
#include <math.h>

#include "balise.h"

/*  rank = (pp_rank * dp + dp_rank) * tp + tp_rank  */
void mesh_init_3d(Mesh *mesh, int tp, int pp)
{
    int rank = group_rank(mesh->world), dp = group_size(mesh->world) / (tp * pp);
    *mesh = (Mesh){.world = mesh->world, .tp_degree = tp, .dp_degree = dp, .pp_degree = pp};
    mesh->tp_rank = rank % tp;
    mesh->dp_rank = rank / tp % dp;
    mesh->pp_rank = rank / (tp * dp);
    mesh->tp = group_split(mesh->world, rank / tp, mesh->tp_rank);
    mesh->dp = group_split(mesh->world, mesh->pp_rank * tp + mesh->tp_rank, mesh->dp_rank);
    mesh->pp = group_split(mesh->world, mesh->dp_rank * tp + mesh->tp_rank, mesh->pp_rank);
}

/* Each replica adds up the gradients of its passes; the replicas add up theirs once. */
void bucket_filled(Bucket *bucket, int pass, int passes, const Mesh *mesh)
{
    if (pass == passes - 1)
        bucket_ready(bucket, mesh);
}

void metrics_over_stages(Metrics *metrics, const Mesh *mesh)
{
    double sums[] = {metrics->loss_sum, metrics->correct, metrics->count};
    group_sum(mesh->pp, sums, 3);
    *metrics = (Metrics){sums[0], sums[1], sums[2]};
}

double gradient_norm(double shards, double whole, const Mesh *mesh)
{
    group_sum(mesh->tp, &shards, 1);
    double squares = shards + whole;
    group_sum(mesh->pp, &squares, 1);
    return sqrt(squares);
}
