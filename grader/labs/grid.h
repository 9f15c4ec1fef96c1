/** @file
 * Lab 14: the kinds of its cases, and the numbers that the ranks contribute to the sums.
 */
#pragma once

#include "grader/labs/groups.h"

/** The kinds of cases. */
enum {
    THREE_GROUPS, /**< their members */
    SUMS,         /**< metrics_over_stages() and gradient_norm() of drawn numbers */
    WHOLE_STEPS,  /**< two steps of a model */
};

enum {
    USUAL_SUM,    /**< the first call */
    ZERO_SUM,     /**< the call in which the last rank of a tp group has no squares of shards */
    INFINITE_SUM, /**< the call in which a loss and some squares are infinite */
    DIVERGED_SUM, /**< the call in which they are NaN */
    SUMS_TIMES,   /**< how often a case of SUMS calls each function */
};

/** The sum of squares of a rank's shards, in call number `time`. In INFINITE_SUM and DIVERGED_SUM,
 *  infinite or NaN on the first rank of each replica. */
double grid_shards(const Scenario *run, int rank, int time);
/** The sum of squares of a rank's whole parameters, the same on all ranks of its tp group. */
double grid_whole(const Scenario *run, int rank, int time);

/** Writes one number that every rank must have. */
void grid_write_number(Scenario *run, Check check, Label label, double number);
/** Takes two steps of a model: on a rank, at its place in the grid; in the judge, in one stage. The
 *  caller frees run->stage. */
void grid_run_steps(Scenario *run);

/** In the judge: what a wrong group, or a wrong rank or degree in it, most likely is. */
const char *wrong_group_of_grid(const struct Trial *t, const Entry *got, const Entry *want);
/** In the judge: why numbers are wrong; asked before the mistakes that it replays. */
extern Finder *const grid_reasons[];
/** In the judge: the same, asked after them. */
extern Finder *const grid_more_reasons[];
/** In the judge: stages_ending(), after a line if wrong sums are the cause. */
void grid_ending(const struct Trial *t, char *text, size_t size);
