/* Lab 1 with its own sum, which the answer defines. */
#include "balise_mpi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Tensor *sum(Tensor *x, const Mesh *mesh)
{
    /* here */
}

#define group_all_reduce(group, x) sum(x, mesh)
