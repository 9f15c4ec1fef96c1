/* The grid of ranks. */
#include "mesh/mesh.h"

#include "base/language.h"
#include "base/run.h"

/* Ends the run if lab 8 or 10 has changed fields other than those of its own group. */
static void keeps_the_rest(const Mesh *before, const Mesh *mesh, bool makes_tp)
{
    const struct {
        const char *name;
        bool changed;
    } fields[] = {
        {"world", mesh->world != before->world},
        {"dp", makes_tp && mesh->dp != before->dp},
        {"dp_rank", makes_tp && mesh->dp_rank != before->dp_rank},
        {"dp_degree", makes_tp && mesh->dp_degree != before->dp_degree},
        {"tp", !makes_tp && mesh->tp != before->tp},
        {"tp_rank", !makes_tp && mesh->tp_rank != before->tp_rank},
        {"tp_degree", !makes_tp && mesh->tp_degree != before->tp_degree},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].changed)
            misuse(makes_tp ? N_("lab 8 sets tp, tp_rank and tp_degree, and leaves the rest of "
                                 "the mesh as it is")
                            : N_("lab 10 sets dp, dp_rank and dp_degree; the tp group stays the "
                                 "one that lab 8 has made"),
                   "%s changed mesh->%s", makes_tp ? "mesh_init_tp" : "mesh_init_dp",
                   fields[i].name);
}

/* The grid of a program without lab 14. Consecutive ranks split a layer; consecutive groups of such
 * ranks form a stage. Labs 8 and 10 see one stage as their world. */
__attribute__((weak)) void mesh_init_3d(Mesh *mesh, int tp, int pp)
{
    Group *world = mesh->world;
    mesh->pp_degree = pp;
    if (pp > 1) {
        int rank = group_rank(world), ranks_of_a_stage = group_size(world) / pp;
        mesh->pp_rank = rank / ranks_of_a_stage;
        mesh->pp = group_split(world, rank % ranks_of_a_stage, rank);
        mesh->world = group_split(world, mesh->pp_rank, rank);
    }
    Mesh before = *mesh;
    mesh_init_tp(mesh, tp);
    keeps_the_rest(&before, mesh, true);
    before = *mesh;
    mesh_init_dp(mesh);
    keeps_the_rest(&before, mesh, false);
    mesh->world = world;
}

void mesh_open(Mesh *mesh, Group *world, int tp, int pp)
{
    *mesh = (Mesh){.world = world, .tp_degree = 1, .dp_degree = 1, .pp_degree = 1};
    mesh_init_3d(mesh, tp, pp);
    if (mesh->world != world)
        misuse(N_("lab 14 sets tp, dp and pp, and leaves the world as it is"),
               "mesh_init_3d changed mesh->world");
}
