/** @file
 * PROFILE=1: where the time of a step goes, by operation, and within exchanges how long this rank has waited for others.
 *
 * Whoever comes last to an exchange waits for nobody: the least time that one of the group spent on it is what the exchange
 * takes, and what another spent above that it waited. No clocks are compared, and nothing is sent while a step is timed.
 */
#pragma once

#include "base/language.h"
#include "mesh/mesh.h"
#include "train/report.h"

/* Names of spans that a profile adds or finds exchanges in. */

/** What a rank waited for others. */
#define WAITING_FOR_OTHERS N_("waiting for other ranks")
/** Which rows of a table are in use on any replica? */
#define REDUCTION_ROWS N_("gradient reduction, which rows")
/** What the backward pass spent on starting sums and moving them on. */
#define REDUCTION_UNDER_WAY N_("gradient reduction, under way")
/** What was left of the reduction when the backward pass had ended. */
#define REDUCTION_NOT_HIDDEN N_("gradient reduction, not hidden")

/** What this rank has waited in each of `count` exchanges of the group, which took `seconds`. Collective.
 *  @return false where the ranks have made different numbers of them, as a student's may: nothing is known then */
bool waiting_of(Group *group, const double *seconds, int count, double *waited);

/** What was counted so far is forgotten, and exchanges are listened to from now on. */
void waiting_begin(void);

/** A step is over: its exchanges are set beside those of the other ranks, and what was waited becomes a span of its own. Collective. */
void waiting_step(const Mesh *mesh);

enum { WARM_UP = 2 }; /**< steps of a run that fill the pool and the caches */

/** Step `done` of this run (from 0) begins: those of the warm-up are left out where more follow. */
void profile_step(int64_t done);

/** Prints the table of rank 0 and writes it as a line of the metrics. What this rank waited for others stands apart from what
 * the exchanges took. `steps` are those that this run has made. */
void profile_report(Report *report, int64_t steps);
