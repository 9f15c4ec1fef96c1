/* Lab 8, TP sub-communicator: neighbours in the world form a group. */
#include "grader/labs/groups.h"

#ifndef BALISE_DOUBLE
void scenario_08(Scenario *run)
{
    const Mesh *mesh = run->mesh;
    write_group(run, TP, mesh->tp, mesh->tp_rank, mesh->tp_degree);
}
#else
Lab lab_08 = {
    LAB_FILES_08,
    .title = N_("TP sub-communicator"),
    .points = {[GROUPS] = 7},
    .layouts = "4x2 6x2 6x3 8x4 4x1 4x4 6x1 6x6",
    .has_replicas = true,
    .starts_working = true,
    .kinds = {{.expect = expect_groups}},
};
#endif
