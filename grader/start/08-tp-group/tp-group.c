/* Lab 8: the world is split into groups of tp consecutive ranks. Each group holds one model. */
#include "balise.h"

/*  world 6, tp 2:   {0 1} {2 3} {4 5}  */
void mesh_init_tp(Mesh *mesh, int tp)
{
    /* TODO(8): as handed out, the whole world splits one model. Make mesh->tp; 4 lines. */
    mesh->tp_rank = group_rank(mesh->world);
    mesh->tp_degree = group_size(mesh->world);
}
