/* Lab 10, DP sub-communicator: the ranks that hold the same shard form a group. */
#include "grader/labs/groups.h"

#ifndef BALISE_DOUBLE
void scenario_10(Scenario *run)
{
    write_group(run, DP);
}
#else
Lab lab_10 = {
    LAB_FILES_10,
    .title = N_("DP sub-communicator"),
    .points = {[GROUPS] = 7},
    .layouts = "4x2 6x2 6x3 8x2 4x1 4x4 8x4 8x8",
    .has_replicas = true,
    .over_replicas = true,
    .starts_working = true,
    .predict =
        {.question =
             N_("In a world of eight ranks with tp = 2, each rank contributes its world rank to an "
                "all-reduce on mesh->dp. What does rank 5 get?"),
         .at = {.world = 8, .tp = 2},
         .count = dp_sum_on_rank_5},
    .examine = {.wrong_group = wrong_group},
    .kinds = {{.expect = expect_groups}},
};
#endif
