/** @file
 * What make trace, make report, make debug and make measure show of one case, and what --list and --may-send tell of the labs.
 */
#pragma once

#include <jansson.h>

#include "grader/judge/grade.h"

/** The runner of the lab that the options name, and the case that they name or one that suits to be looked at; what they are is
 *  printed.
 *  @return the case, one of `cases`; NULL where the lab does not build or is refused, which is printed then */
const Case *case_to_look_at(const Options *o, Case cases[MAX_CASES], char *runner, size_t size);

/** Runs one case of a lab, without judging it, and prints what its ranks called: ranks as columns, the calls of a group that
 *  met in one row. Also of a case that hung or crashed, with the first difference marked.
 *  @return the exit status: 0, or 1 when the lab does not build or is refused */
int trace_lab(const Options *o);

/** Runs one case of a lab, without judging it, without limits and without a sandbox, with gdb on rank o->debug, which stops in the
 *  first of the functions o->stops (names, separated by blanks) that it comes to. Returns when gdb has ended.
 *  @return as trace_lab() */
int debug_lab(const Options *o);

/** Runs one case of a lab, judges it, and writes what its ranks called of MPI, what part of which matrix each holds, and which
 *  elements are wrong, as JSON to the file that the options name. Also of a case that hung or crashed.
 *  @return as trace_lab() */
int picture_lab(const Options *o);
/** Each matrix that a rank must write down, with the parts that the ranks hold. */
json_t *picture_matrices(const Case *c, const Outcome *outcome);
/** A text as JSON; bytes that are no UTF-8 become '?'. */
json_t *picture_text(const char *text);

/** Runs the case of a lab's prediction, judges it, and prints the number that its record counts in it. Gives up on a lab that is
 *  not right.
 *  @return the exit status: 0 */
int measure_lab(const Options *o);

/** Prints the labs as JSON: number, folder, file, title, needs, layouts, part, points by check, question and unit of the
 *  prediction. */
void list_labs(FILE *out);
/** Prints how many numbers a lab may send forward and backward, over all ranks of a group, at these sizes: "n=4 B=8 S=128 H=768
 *  F= OUT= C= N= PART= VOCABULARY=", each 0 where it is not named.
 *  @return false with `problem` for another name */
bool list_sent(FILE *out, const Lab *lab, const char *sizes, Problem *problem);
