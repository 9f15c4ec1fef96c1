/** @file
 * PROFILE=1: where the time of a step goes, by operation.
 */
#pragma once

#include "comm/comm.h"
#include "train/report.h"

/** Step `done` of this run (from 0) begins: the first two fill the pool and the caches, and are left out where more follow. */
void profile_step(int64_t done);

/** Prints the table of rank 0 and writes it as a line of the metrics. What this rank waited for others stands apart from what
 * the exchanges took. `steps` are those that this run has made. */
void profile_report(Report *report, int64_t steps);
