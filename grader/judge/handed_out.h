/** @file
 * What of a student's file is as it was handed out.
 */
#pragma once

#include "grader/judge/grade.h"

/** Is all of it, and is there nothing to be judged? Then the result says so. */
bool is_untouched(LabResult *result, const Options *o);

/** Checks that failed, and whose functions (Lab.written) are as in the start file, become "to do". */
void look_for_handed_out(LabResult *result, const Options *o);
