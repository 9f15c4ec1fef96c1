/* The sentences for mistakes in sums and averages over the ranks of a group. */
#include "grader/judge/diagnose/evidence.h"

const Suspect suspects_of_groups[MISTAKES] = {
    [OWN_ONLY] =
        {IN_SUMS,
         N_("it holds this rank's own contribution only: those of the other ranks are missing")},
    [OWN_FOR_ALL] = {IN_SUMS,
                     N_("it is this rank's own contribution times the number of ranks: the "
                        "contributions differ, so the ranks must add them up")},
    [COUNTED_TWICE] = {IN_SUMS, N_("it counts this rank's own part once too often: the sum over "
                                   "the ranks has it already")},
    [PAIRS_ONLY] = {IN_SUMS, N_("this rank has the sum of two contributions only: those of the "
                                "other ranks are missing")},
    [CHANGED_INPUT] =
        {IN_SUMS, N_("all_reduce altered its input; another operation still needs the old values")},
    [OTHER_REPLICAS] =
        {IN_SUMS | IN_BIASES,
         N_("it contains contributions of another replica: it was summed over the world")},
    [NOT_DIVIDED] = {IN_AVERAGES, N_("gradients grow with the number of replicas: this is their "
                                     "sum, not their mean")},
    [DIVIDED_TWICE] = {IN_AVERAGES, N_("the gradients are averaged twice: divided by the number of "
                                       "replicas once too often")},
    [DIVIDED_BY_WORLD] =
        {IN_AVERAGES,
         N_("it is divided by the total number of ranks: divide by the number of replicas")},
    [DIVIDED_BY_TP] =
        {IN_AVERAGES,
         N_("it is divided by the size of the tp group: divide by the number of replicas")},
    [DIVIDED_ALONE] =
        {IN_AVERAGES,
         N_("it is this replica's own value, divided: the other replicas are missing")},
    [OVER_TP] = {IN_AVERAGES, N_("it is taken over the tp group: use the dp group, the replicas")},
    [OVER_TP_BY_DP] = {IN_AVERAGES, N_("it is a sum over the tp group, but the ranks of that group "
                                       "hold different pieces of the weights")},
    [OVER_THE_WORLD] = {IN_AVERAGES, N_("it is taken over the world: this mixes different pieces "
                                        "of the weights, or counts each row once per tp rank")},
    [OVER_THE_WORLD_BY_DP] = {IN_AVERAGES, N_("gradients of different pieces of a weight were "
                                              "added together: the group is the world")},
    [ONE_REPLICA] = {IN_AVERAGES,
                     N_("it covers one replica's data only: the other replicas are missing")},
    [WEIGHTS_OWN] = {IN_WEIGHTS,
                     N_("these are this replica's own weights, with nothing from the other "
                        "replicas")},
    [WEIGHTS_SUMMED] = {IN_WEIGHTS,
                        N_("the weights grow with the number of replicas: this is their "
                           "sum, not their mean")},
    [WEIGHTS_AS_EQUALS] =
        {IN_WEIGHTS, N_("all replicas count the same, 1/dp, but they have trained on different "
                        "numbers of rows: scale each replica's weights by its share of all rows")},
    [WEIGHTS_BY_ROWS] =
        {IN_WEIGHTS, N_("each replica's weights are divided by the number of its rows: "
                        "multiply them by that number, and divide by the rows of all replicas")},
    [WEIGHTS_SCALED_LATE] =
        {IN_WEIGHTS, N_("the sum of the weights is multiplied by this replica's share of the rows: "
                        "each replica multiplies its own weights, before the sum")},
    [WEIGHTS_OVER_WORLD] = {IN_WEIGHTS,
                            N_("the mean is taken over the world, which mixes different "
                               "pieces of the weights: take it over mesh->dp")},
    [WEIGHTS_SUMMED_OVER_WORLD] =
        {IN_WEIGHTS, N_("the weights are summed over the world, which mixes different pieces of "
                        "them: sum over mesh->dp")},
    [WEIGHTS_OVER_TP] = {IN_WEIGHTS, N_("the mean is taken over the tp group, whose ranks hold "
                                        "different pieces of the weights: take it over mesh->dp")},
    [ROWS_OVER_WORLD] =
        {IN_WEIGHTS,
         N_("the shares of the replicas are divided by the number of ranks in a replica, as if the rows were summed over the world: sum the rows over mesh->dp, so that the shares add up to 1")},
    [ROWS_OVER_WORLD_BY_TP] =
        {IN_WEIGHTS,
         N_("the rows are summed over the world and divided by tp, but with pp stages a "
            "replica has tp times pp ranks: sum the rows over mesh->dp")},
    [ROWS_AT_LEAST_ONE] = {IN_WEIGHTS,
                           N_("a replica without rows counts as if it had one: its share is 0, "
                              "and it gets the mean like all others")},
    [WEIGHTS_NOT_SUMMED] =
        {IN_WEIGHTS,
         N_("these are this replica's own weights times its share of the rows: those of "
            "the other replicas are missing, or the sum is in another tensor")},
    [WEIGHTS_HALF_WAY] = {IN_WEIGHTS, N_("the weights are halfway between this replica's own and "
                                         "the mean: after an average, all replicas have the mean")},
    [SHARDS_OWN] = {IN_SHARDS,
                    N_("these are this replica's own gradients, with nothing from the other "
                       "replicas")},
    [SHARDS_SUMMED] = {IN_SHARDS, N_("it is the sum over the replicas, not their mean")},
    [SHARDS_OWN_SCALED] = {IN_SHARDS, N_("these are this replica's own gradients, divided by the "
                                         "number of replicas: those of the others are missing")},
    [SHARDS_BY_TP] = {IN_SHARDS,
                      N_("the sum is divided by the size of the tp group, or by a constant: divide "
                         "by the number of replicas, mesh->dp_degree")},
    [SHARDS_BY_WORLD] = {IN_SHARDS, N_("the sum is divided by the total number of ranks: divide by "
                                       "the number of replicas, mesh->dp_degree")},
    [SHARDS_BY_WORLD_OVER_TP] =
        {IN_SHARDS,
         N_("the divisor is (number of ranks) / tp, but with pp stages a replica has tp times pp "
            "ranks: divide by the number of replicas, mesh->dp_degree")},
    [SHARDS_OWN_DIVIDED] = {IN_SHARDS, N_("before the sum, each replica divides its own part only: "
                                          "divide all of `gradients` before the sum, or this part "
                                          "after it")},
    [SHARDS_DIVIDED_TWICE] = {IN_SHARDS, N_("the sum is divided by the number of replicas twice")},
};
