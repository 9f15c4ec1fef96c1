/** @file
 * Lab 17: an optimiser whose state is split over the replicas. Each function gets inputs of its
 * own, which are right whatever the other functions have returned.
 */
#pragma once

#include "grader/labs/groups.h"

/** The kinds of cases, one for each optimiser. */
enum {
    SHARDED_SGD,   /**< shows a wrong factor at once */
    SHARDED_ADAMW, /**< has state */
};

/** The functions of a step; the index in their labels. */
typedef enum ShardedCall {
    SHARDED_REDUCE,  /**< reduce_scatter_gradients() */
    SHARDED_SQUARES, /**< squares_over_parts() */
    SHARDED_STEP,    /**< sharded_step() */
    SHARDED_CALLS,   /**< how many there are */
} ShardedCall;
/** The names of these functions, for reports. */
static const char *const sharded_functions[SHARDED_CALLS] = {"reduce_scatter_gradients",
                                                             "squares_over_parts", "sharded_step"};

enum {
    SHARDED_RUNS = 2,  /**< per case; only the first one clips */
    SHARDED_STEPS = 3, /**< of a run */
};
#define SHARDED_RATE  0.25  /**< the learning rate of the first step */
#define SHARDED_DECAY 0.125 /**< the weight decay */
#define SHARDED_BETA1 0.75  /**< of AdamW */
#define SHARDED_BETA2 0.875 /**< of AdamW */
#define SHARDED_EPSILON                                                                            \
    0.25 /**< of AdamW: large, so that its first step shows a wrong factor too */

enum {
    SHARDED_CUTS = 5,  /**< how many counts are split; the count of the case comes first */
    SHARDED_MANY = 196 /**< parts of all counts except the case's; 2.0 / 196 * 196 is less than 2 */
};
/** The counts that are split: the count of the case (0 here), a count smaller than the number of
 *  parts, one that is not a multiple of the number of parts, one too large for an int, and another. */
static const int64_t sharded_counts[SHARDED_CUTS] = {0, 2, 1000, 5000000180, 3001};

/** How many weights a rank holds. */
int64_t sharded_weights(const Case *c);
/** The label of a function's call, or of its numbers, in a step, counted from 0. */
static inline Label sharded_label(What what, int call, int which, int step)
{
    Label label = label_of(what, OF_SHARDS, call, step);
    label.detail = which;
    return label;
}
/** The label of the parts of a count: where each begins and ends. */
static inline Label sharded_cut_label(int cut)
{
    return label_of(VALUE_OF, OF_SHARDS, SHARDED_CALLS, cut);
}
/** The number of parts into which this count is split. */
static inline int sharded_parts(const Case *c, int cut)
{
    return cut == 0 ? replicas_of(c) : SHARDED_MANY;
}

/** The gradients of a rank: [P]. */
Tensor *sharded_gradient(Scenario *run, int rank, int which, int step);
/** The mean gradients that sharded_step() gets in a replica's own part, the same for all replicas of a
 *  tp rank: [P]. */
Tensor *sharded_mean(Scenario *run, int rank, int which, int step);
/** The weights before a run, away from zero, the same for all replicas of a tp rank: [P]. */
Tensor *sharded_first_weights(Scenario *run, int rank, int which);
/** The sum of squares of a rank's part, of split parameters (0) or of whole ones (1). The last
 *  replica has the largest sum of split ones, the first replica that of whole ones; in the last
 *  step that clips, these two are NaN. */
double sharded_squares(const Scenario *run, int rank, int which, int step, int whole);

/** The learning rate of a step. */
static inline double sharded_rate(int step)
{
    return SHARDED_RATE / (step + 1);
}

/** Writes what a call has sent and allocated. */
void sharded_write_call(Scenario *run, int call, int which, int step);
/** What squares_over_parts() leaves: the two sums, and how many numbers besides its arguments it
 *  has changed. */
enum { SHARDED_NUMBERS = 3 };
/** Writes what squares_over_parts() has left. */
void sharded_write_squares(Scenario *run, int which, int step,
                           const double squares[SHARDED_NUMBERS]);

/** In the judge: takes step `step`, counted from 0, with these gradients and this state. */
void sharded_make_step(const Scenario *run, int step, Tensor *w, const Tensor *g, Tensor *m,
                       Tensor *v);
/** In the judge: AdamW's state before the first step. */
Tensor *sharded_zeros(Scenario *run);
/** In the judge: does optimizer_part split the weights into parts that follow each other, none too
 *  long? */
void compare_sharded_parts(struct Trial *t);
/** In the judge: why numbers are wrong; asked before the mistakes that it replays. */
extern Finder *const shards_reasons[];
/** In the judge: the same, asked after them. */
extern Finder *const shards_more_reasons[];
/** In the judge: computes what a rank must have. */
ExpectFunction expect_sharded;
