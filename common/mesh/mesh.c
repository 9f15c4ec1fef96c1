/* The grid of ranks. */
#include "mesh/mesh.h"

/* Stages are far apart: consecutive ranks split a layer, then come the replicas, then the stages. So what balises 8 and 10 see as
 * their world is one stage. */
void mesh_open(Mesh *mesh, Group *world, int tp, int pp)
{
    *mesh = (Mesh){.world = world, .tp_degree = 1, .dp_degree = 1, .pp_degree = pp};
    if (pp > 1) {
        int rank = group_rank(world), ranks_of_a_stage = group_size(world) / pp;
        mesh->pp_rank = rank / ranks_of_a_stage;
        mesh->pp = group_split(world, rank % ranks_of_a_stage, rank);
        mesh->world = group_split(world, mesh->pp_rank, rank);
    }
    mesh_init_tp(mesh, tp);
    mesh_init_dp(mesh);
    mesh->world = world;
}

bool mesh_check(int ranks, int tp, Problem *problem)
{
    if (tp >= 1 && ranks % tp == 0)
        return true;
    return problem_set(problem, NULL, "choose NTASKS as a multiple of TP",
                       "TP=%d does not divide NTASKS=%d", tp, ranks);
}
