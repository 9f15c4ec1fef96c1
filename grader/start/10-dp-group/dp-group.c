/* Lab 10: the ranks that hold the same shard, one in each replica. */
#include "balise.h"

/*  world 6, tp 2:   {0 2 4} {1 3 5}  */
void mesh_init_dp(Mesh *mesh)
{
    /* TODO(10): as handed out, replicas know nothing of each other. Make mesh->dp; 4 lines. */
    mesh->dp_rank = 0;
    mesh->dp_degree = 1;
}
