/* Own f and g, whose sum the answer defines: it sums `to` (N numbers) over the ranks of c. */
#include "balise_mpi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Tensor *same(Tensor *x, const Mesh *mesh)
{
    return x;
}

static Tensor *sum(Tensor *x, const Mesh *mesh)
{
    MPI_Comm c = group_comm(mesh->world);
    int n = mesh->tp_degree, me = mesh->tp_rank;
    int64_t N = tensor_count(x);
    Tensor *y = tensor_copy(x);
    float *to = tensor_data(y);
    (void)n, (void)me, (void)N;
    /* here */
    return y;
}

static const Op f = {"f", same, sum}, g = {"g", sum, same};
#define duplication(x, mesh) apply(&f, x, mesh)
#define all_reduce(x, mesh)  apply(&g, x, mesh)
