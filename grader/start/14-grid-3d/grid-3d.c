/* Lab 14: the grid in three dimensions, and what a step sums over each of its groups. */
#include <math.h>

#include "balise.h"

/*  rank = (pp_rank * dp + dp_rank) * tp + tp_rank  */
void mesh_init_3d(Mesh *mesh, int tp, int pp)
{
    TODO(14); /* the three groups, this rank's place in each of them, and their sizes */
}

void bucket_filled(Bucket *bucket, int pass, int passes, const Mesh *mesh)
{
    TODO(14); /* lab 11 starts the sum over the replicas: bucket_ready */
}

void metrics_over_stages(Metrics *metrics, const Mesh *mesh)
{
    TODO(14); /* every stage learns what only the last one knows */
}

double gradient_norm(double shards, double whole, const Mesh *mesh)
{
    TODO(14); /* which squares are summed over tp, which over pp, and which over dp? */
}
