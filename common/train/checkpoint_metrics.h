/** @file
 * The metrics file of a run that resumes.
 */
#pragma once

#include <stdint.h>

#include "base/problem.h"

/** Drops what a run that goes on after `step` will write again: steps beyond it, evaluations that did not
 * come before it, summaries, and a line that was cut short. What remains replaces the file at once. A file
 * that is not there is left so. */
bool metrics_keep(const char *path, int64_t step, int64_t steps_an_epoch, Problem *problem);
