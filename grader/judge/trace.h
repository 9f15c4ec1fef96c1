/** @file
 * make trace: the calls of MPI of one case as a table.
 */
#pragma once

#include "grader/judge/grade.h"

/** Plays one case of a lab, without judging it, and prints what its ranks called: ranks as columns, the calls of a group that
 *  met in one row. Also of a case that hung or crashed, with the first difference marked.
 *  @return the exit status: 0, or 1 when the lab does not build or is refused */
int trace_lab(const Options *o);

/** The runner of the lab that the options name, and the case that they name or one that suits to be looked at; what they are is printed.
 *  @return the case, one of `cases`; NULL where the lab does not build or is refused, which is printed then */
const Case *case_to_look_at(const Options *o, Case cases[MAX_CASES], char *runner, size_t size);
