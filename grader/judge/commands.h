/** @file
 * The commands on one case (make trace, make tape, make report, make debug, make measure), the
 * timed training (--throughput), and the lists of labs (--list, --may-send).
 */
#pragma once

#include <jansson.h>

#include "grader/judge/grade.h"

/** Returns the lab's runner and the case that the options name, or else a suitable case; prints
 *  which they are. The case must have the rank o->rank.
 *  @return the case, one of `cases`; NULL, after a message, if the lab does not build or is
 *  refused */
const Case *case_to_look_at(const Options *o, Case cases[MAX_CASES], char *runner, size_t size);
/** Runs that case, and sets *c to it. @return its runs; NULL if there is no case to run */
Runs *run_case_to_look_at(const Options *o, Case cases[MAX_CASES], const Case **c);

/** Runs one case of a lab without judging it, and prints its ranks' calls: a column per rank, and
 *  matching calls of a group in one row. Marks the first difference, if there is one.
 *  @return the exit status: 0, or 1 if the lab does not build or is refused */
int trace_lab(const Options *o);

/** Runs one case of a lab without judging it, and prints the tape of rank o->rank: the operations
 *  of its first pass.
 *  @return as trace_lab() */
int tape_lab(const Options *o);

/** Runs one case of a lab without judging it, without a time limit and without a sandbox, with gdb
 *  on rank o->rank. gdb stops in the first of the functions o->stops (names separated by blanks)
 *  that the rank reaches. Returns when gdb ends.
 *  @return as trace_lab() */
int debug_lab(const Options *o);

/** Runs one case of a lab, judges it, and writes JSON to the file that the options name: the
 *  checks, the MPI calls, the tapes, the schedule, the parts of matrices that each rank holds, and
 *  the wrong elements. Also works if the case hung or crashed.
 *  @return as trace_lab() */
int picture_lab(const Options *o);
/** Each matrix that ranks must report, with the parts that they hold. */
json_t *picture_matrices(const Case *c, const Outcome *outcome);
/** A text as JSON; bytes that are not UTF-8 become '?'. */
json_t *picture_text(const char *text);

/** Runs the case of a lab's prediction, judges it, and prints the number to be predicted, as the
 *  lab's record counts it. Ends the program with an error if the lab's case is not right.
 *  @return the exit status: 0 */
int measure_lab(const Options *o);

/** Times the training of a small BERT on 4 ranks, tp = 2, with TRAINING_LAB and the labs that its
 *  runner is linked with. Prints tokens per second and the last loss, and writes both as JSON to
 *  the files o->out. Ends the program with an error if a training run does not run to completion.
 *  @return the exit status: 0 */
int time_training(const Options *o);

/** Prints the labs as JSON: number, folder, file, title, needs, layouts, part, points by check,
 *  question and unit of the prediction, number of cases, and the most ranks of a case. */
void list_labs(FILE *out);
/** Prints how many numbers a lab may send forward and backward, over all ranks of a group, at these
 *  sizes: "n=4 B=8 S=128 H=768 F= OUT= C= N= PART= VOCABULARY= TP= STAGES= MICROS= HELD=". n, TP,
 *  STAGES and MICROS are 1 if not given, the others 0.
 *  @return false with `problem` for an unknown name or an impossible number */
bool list_sent(FILE *out, const Lab *lab, const char *sizes, Problem *problem);
