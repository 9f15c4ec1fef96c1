/** @file
 * make debug: gdb on one rank of a case.
 */
#pragma once

#include "grader/judge/grade.h"

/** Plays one case of a lab, without judging it, without limits and without a sandbox, with gdb on rank o->debug, which stops in the first of the
 *  functions o->stops (names, separated by blanks) that it comes to. Returns when gdb has ended.
 *  @return the exit status: 0, or 1 when the lab does not build or is refused */
int debug_lab(const Options *o);
