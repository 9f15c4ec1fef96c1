/** @file
 * A case's first step at the pace of a cluster.
 */
#pragma once

#include "grader/judge/launch/outcome.h"
#include "grader/judge/mpi/schedule.h"

/** A step on a cluster. */
typedef struct OnCluster {
    const char *name;  /**< of the cluster and the model; points into the given text */
    StepSchedule step; /**< the replay */
    double free;       /**< seconds of the step if messages took no time; NAN if unknown */
    double late;       /**< likewise if the sums over replicas followed the backward pass */
} OnCluster;

/** Replays the step at the pace of `text`, the output of common/bench/clusters.py.
 *  @return false if the case has no whole step to replay */
bool step_on_cluster(const Case *c, const Outcome *outcome, const char *text, OnCluster *on);

/** Seconds that rank 0's sums over replicas take. */
double sums_take(const StepSchedule *s);

/** The rank that works longest among those that take part in these sums. The step waits for it. */
int busiest_replica(const StepSchedule *s);

/** Seconds of these sums during which that rank works. */
double sums_overlapped(const StepSchedule *s);
