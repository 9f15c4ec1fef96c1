/* Lab 16: the replicas train alone; every few steps, their weights are averaged. */
#include "balise.h"

bool average_is_due(int64_t step, int64_t every, bool last)
{
    return step % every == 0 || last;
}

/* Federated averaging: the sum over the replicas k of rows_k / rows times the weights of k. */
void average_weights(Tensor *weights, double rows, const Mesh *mesh)
{
    double all_rows = rows;
    group_sum(mesh->dp, &all_rows, 1);
    scale(weights, (float)(rows / all_rows));
    pending_wait(group_all_reduce_start(mesh->dp, weights));
}
