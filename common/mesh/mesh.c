/* The grid of ranks. */
#include "mesh/mesh.h"

void mesh_open(Mesh *mesh, Group *world, int tp)
{
    *mesh = (Mesh){.world = world, .tp_degree = 1, .dp_degree = 1};
    mesh_init_tp(mesh, tp);
    mesh_init_dp(mesh);
}

bool mesh_check(int ranks, int tp, Problem *problem)
{
    if (tp >= 1 && ranks % tp == 0)
        return true;
    return problem_set(problem, NULL, "choose NTASKS as a multiple of TP",
                       "TP=%d does not divide NTASKS=%d", tp, ranks);
}
