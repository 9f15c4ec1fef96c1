/* Lab 16: the replicas train alone; every few steps, their weights are averaged. */
#include "balise.h"

/* Called after each step of the optimiser; `step` is the number of steps done, from 1 on. */
bool average_is_due(int64_t step, int64_t every, bool last)
{
    TODO(16); /* 1 line */
}

/* Called when an average is due: all replicas get the mean of their weights, weighted by rows. */
void average_weights(Tensor *weights, double rows, const Mesh *mesh)
{
    TODO(16); /* 4 lines: sum the rows, then the weights */
}
