/* Lab 10, DP sub-communicator: the ranks that hold the same shard make a group. */
#include "grader/labs/groups.h"

#ifndef BALISE_DOUBLE
void scenario_10(Scenario *run)
{
    const Mesh *mesh = run->mesh;
    write_group(run, DP, mesh->dp, mesh->dp_rank, mesh->dp_degree);
}
#else
Lab lab_10 = {
    LAB_FILES_10,
    .title = N_("DP sub-communicator"),
    .points = {[GROUPS] = 7},
    .layouts = "4x2 6x2 6x3 8x2 4x1 4x4 8x4",
    .has_replicas = true,
    .over_replicas = true,
    .starts_working = true,
    .kinds = {{.expect = expect_groups}},
};
#endif
