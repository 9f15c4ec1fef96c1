/** @file
 * Lab 16: replicas that step on their own, and average their weights every few steps. In each step,
 * the loss of each replica has its own gradient, g + decay w, so the replicas drift apart.
 */
#pragma once

#include "grader/labs/groups.h"

/** The kinds of cases. */
enum {
    EACH_STEP,  /**< an average after every step: equals a run on the whole batch */
    SOME_STEPS, /**< an average every few steps */
};

enum {
    AVERAGES_RUNS = 2,    /**< per case; the first one resumes after AVERAGES_RESUMED steps */
    AVERAGES_STEPS = 10,  /**< the last step of a run */
    AVERAGES_RESUMED = 3, /**< steps done before the first run */
};
#define AVERAGES_RATE 0.25 /**< the learning rate */

/** The first step of a run, from 1. */
static inline int averages_first_step(int which)
{
    return which == 0 ? AVERAGES_RESUMED + 1 : 1;
}
/** The arguments of a call of average_is_due() that is made for its answer alone. */
typedef struct LargeStep {
    int64_t step, every; /**< its first two arguments */
    bool last;           /**< the third one */
} LargeStep;
enum { AVERAGES_LARGE = 10 }; /**< how many such calls */
/** In most calls, `step` or `every` exceeds an int. At most 5000 multiples of `every` come before
 *  `step`, so a lab may count them. */
extern const LargeStep averages_large[AVERAGES_LARGE];
/** A function with the declaration of average_is_due(). */
typedef bool DueFunction(int64_t step, int64_t every, bool last);

/** Are the weights read after this step? Yes at the end of each run, and once before the end of
 *  the first run. */
bool averages_is_last(int which, int step);
/** How many weights a rank holds. */
int64_t averages_weights(const Case *c);

/** The number of rows of a replica in a step; the last of four replicas has none. */
double averages_rows(const Scenario *run, int replica, int which, int step);
/** The decay of a replica's weights in a step. */
double averages_decay(const Scenario *run, int replica, int which, int step);
/** The gradient of a rank in a step, without the decay. */
Tensor *averages_gradient(Scenario *run, int rank, int which, int step);
/** The weights of a rank before a run, the same on all replicas. */
Tensor *averages_first_weights(Scenario *run, int rank, int which);

/** The label of what happens after a step. */
Label averages_label(What what, int which, int step);
/** The label of the answers to averages_large. */
Label averages_large_label(void);
/** Writes the answers to averages_large. */
void averages_write_large(Scenario *run, DueFunction *is_due);
/** Writes what average_is_due() and average_weights() sent and allocated after a step. */
void averages_write_call(Scenario *run, int which, int step, bool due);
/** Writes the weights after a step, and after the average if one is due. */
void averages_write_weights(Scenario *run, int which, int step, Tensor *weights);

/** In the judge: why numbers are wrong; asked before the mistakes that it replays. */
extern Finder *const averages_reasons[];
/** In the judge: the same, asked after them. */
extern Finder *const averages_more_reasons[];
/** In the judge: appends a line if others wait for a replica without rows, which took no part in an
 *  average. */
void averages_ending(const struct Trial *t, char *text, size_t size);
/** In the judge: a rank's weights before a mean, and its replica's share. */
Summand averages_summand(Scenario *run, const Entry *want, int of, int on);
/** In the judge: computes what a rank must have. */
ExpectFunction expect_averages;
