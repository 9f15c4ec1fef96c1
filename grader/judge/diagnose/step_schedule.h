/** @file
 * The schedule of a step, or of a call of several rounds, as a replay of its calls gives it.
 */
#pragma once

#include "grader/judge/diagnose/trial.h"
#include "grader/judge/mpi/schedule.h"

/** Replays the calls that ranks recorded in a step: in slots if `pace` is NULL, or at that pace.
 *  @return false if the replay does not reach the step's end */
bool schedule_of_step(const Case *c, const Outcome *outcome, int step, const Pace *pace,
                      StepSchedule *schedule);
/** Fails the schedule check: this function ran to completion, but its ranks wait forever in the
 *  replay. */
void tell_stuck(Trial *t, const StepSchedule *s, const char *function);
