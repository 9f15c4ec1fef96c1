/** @file
 * A pool, a mesh, and a model on one of its ranks, for tests of models.
 */
#pragma once

#include "autograd/operations.h"
#include "tests/run_for_tests.h"
#include "model/transformer.h"

static Pool *pool;
static Mesh mesh;

static inline void pool_up(void)
{
    pool = pool_new(0, true);
    mesh = (Mesh){.tp_degree = 1, .dp_degree = 1};
}

static inline void pool_down(void)
{
    pool_free(pool);
}

static inline Model *model_of_rank(int rank, int ranks)
{
    mesh.tp_rank = rank;
    mesh.tp_degree = ranks;
    return model_new(pool, &mesh, 42);
}
