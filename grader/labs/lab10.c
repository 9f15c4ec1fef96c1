/* Lab 10, DP sub-communicator: the ranks that hold the same shard form a group. */
#include "grader/labs/groups.h"

#ifndef BALISE_DOUBLE
void scenario_10(Scenario *run)
{
    const Mesh *mesh = run->mesh;
    write_group(run, DP, mesh->dp, mesh->dp_rank, mesh->dp_degree);
    /* balise 8's results must be unchanged */
    write_group(run, TP, mesh->tp, mesh->tp_rank, mesh->tp_degree);
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
