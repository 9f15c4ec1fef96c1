/* Lab 8, TP sub-communicator: neighbours in the world form a group. */
#include "grader/labs/groups.h"

#ifndef BALISE_DOUBLE
void scenario_08(Scenario *run)
{
    write_group(run, TP);
}
#else
Lab lab_08 = {
    LAB_FILES_08,
    .title = N_("TP sub-communicator"),
    .points = {[GROUPS] = 7},
    .layouts = "4x2 6x2 6x3 8x4 4x1 4x4 6x1 6x6 7x1",
    .has_replicas = true,
    .starts_working = true,
    .predict =
        {.question =
             N_("In a world of eight ranks with tp = 4, each rank contributes its world rank to an "
                "all-reduce on mesh->tp. What does rank 5 get?"),
         .at = {.world = 8, .tp = 4},
         .count = tp_sum_on_rank_5},
    .examine = {.wrong_group = wrong_group},
    .kinds = {{.expect = expect_groups}},
};
#endif
