/** @file
 * make report: what one case gave, as numbers to draw a picture from.
 */
#pragma once

#include <jansson.h>

#include "grader/judge/mpi/recorded.h"
#include "grader/judge/grade.h"
#include "grader/judge/diagnose/trial.h"

/** Plays one case of a lab, judges it, and writes what its ranks called of MPI, what part of which matrix each holds, and which
 *  elements are wrong, as JSON to the file that the options name. Also of a case that hung or crashed.
 *  @return the exit status: 0, or 1 when the lab does not build or is refused */
int picture_lab(const Options *o);

/** Each matrix that a rank must write down, with the parts that the ranks hold. */
json_t *picture_matrices(const Case *c, const Outcome *outcome);

/** Of each rank its calls, in order. */
json_t *picture_calls(const Case *c, const Calls *calls);

/** A text as JSON; bytes that are no UTF-8 become '?'. */
json_t *picture_text(const char *text);
