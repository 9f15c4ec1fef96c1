/** @file
 * PROFILE=1: where the time of a step goes, by operation; and how long this rank waits for others
 * in exchanges.
 *
 * The last rank to arrive at an exchange does not wait. So the shortest time that a rank of the
 * group spent in the exchange is the time of the exchange itself; any time beyond that is waiting.
 * Clocks are not compared, and ranks exchange their times only after the timed step.
 */
#pragma once

#include "base/language.h"
#include "mesh/mesh.h"
#include "train/report.h"

/* Names of spans that a profile adds or in which it finds exchanges. */

/** The time that a rank waited for others. */
#define WAITING_FOR_OTHERS N_("waiting for other ranks")
/** The exchange that finds which table rows any replica uses. */
#define REDUCTION_ROWS N_("gradient reduction, which rows")
/** The time that the backward pass spent on starting and progressing sums. */
#define REDUCTION_UNDER_WAY N_("gradient reduction, under way")
/** The part of the reduction that remained after the backward pass. */
#define REDUCTION_EXPOSED N_("gradient reduction, exposed")

/** Computes how long this rank waited in each of `count` exchanges of the group: `seconds` [count]
 *  are their durations on this rank, `waited` [count] the seconds of waiting in them. Collective.
 *  @return false if the ranks made different numbers of exchanges, as a student's code may; then
 *  `waited` is not set */
bool waiting_of(Group *group, const double *seconds, int count, double *waited);

/** Forgets all counts and starts listening to exchanges. */
void waiting_begin(void);

/** Ends a step: compares its exchanges with those of the other ranks, and makes the waiting a span
 *  of its own. Collective. */
void waiting_step(const Mesh *mesh);

enum { WARM_UP = 2 }; /**< the first steps of a run, which fill the pool and the caches */

/** Call this when step `done` of this run (from 0) begins. The warm-up steps do not count if more
 *  steps follow. */
void profile_step(int64_t done);

/** Prints rank 0's table and writes it as a line of the metrics. Waiting for others is listed
 * separately from the exchanges themselves. `steps` is the number of steps of this run. */
void profile_report(Report *report, int64_t steps);
