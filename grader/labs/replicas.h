/** @file
 * Lab 11: the rows that each replica reads, the mean of the gradients, the sums of the metrics, and
 * two steps of the whole model. Rows are judged as sets, so the judge does not run the sampler; see
 * 11-data-parallel/batch_rows.c.
 */
#pragma once

#include "grader/labs/lab.h"

enum {
    MOST_BUCKETS = 20, /**< per round */
    ROUNDS = 4,        /**< of averaging, per case; the last has the sizes of the second */
};
/** The kinds of cases. */
enum {
    DEALING,     /**< the rows that replicas read */
    AVERAGING,   /**< buckets of gradients */
    COUNTING,    /**< metrics */
    WHOLE_MODEL, /**< two steps of a BERT */
};

/** Marks. The memory holds them where nothing was written; those around the memory must not change.
 *  A mark that was read as a value shows up in `mine`. */
enum {
    ORDER_MARK = -7919, /**< in and around `order`; a prime, so its remainder shows up, too */
    MINE_MARK = -77     /**< in and around `mine` */
};

/** One call of the sampler. */
typedef struct Deal {
    int64_t rows; /**< how many; may be fewer than replicas */
    Tail tail;    /**< what to do with rows that do not fill a round */
    int epoch;    /**< from 0 */
    int seed;     /**< 1: a seed whose upper 32 bits differ from the usual one */
    bool again;   /**< repeats an earlier call after other epochs */
} Deal;

/** Sets `deal` to call `i` of the sampler in a case. Returns false after the last call. */
bool replica_deal(const Case *c, int i, Deal *deal);

/** Flags in the detail of a deal's label, in addition to a Tail. */
enum {
    DEAL_TAIL = 3,            /**< the bits of the Tail */
    DEAL_OF_ANOTHER_SEED = 4, /**< a different seed than usual */
    DEAL_AGAIN = 8,           /**< dealt before */
};
/** The label of an aspect of a deal: ITSELF (the rows), ORDER_OF, OUTSIDE_MINE, OUTSIDE_ORDER or
 *  CALL_OF. */
Label replica_deal_label(What what, const Deal *deal);

/** The number of buckets in a round. */
int replica_buckets(int round);

/** The number of gradients in bucket `bucket`. */
int64_t replica_bucket_size(const Case *c, int bucket);
/** Writes the key by which a rank's gradients for a bucket in a round are drawn. */
void replica_bucket_key(char key[KEY_SIZE], int bucket, int round);

enum { TRAINING_LAB = 11 }; /**< the lab whose cases train a whole model */

enum {
    EVALUATIONS = 6,         /**< per case */
    DIVERGED_EVALUATION = 2, /**< in this one, the loss of the first replica is NaN */
    INFINITE_EVALUATION = 3, /**< in this one, it is infinite */
};
/** The metrics of replica `replica` in an evaluation, from 0; replicas have different numbers of
 *  rows. */
Metrics replica_metrics(const Scenario *run, int replica, int evaluation);
/** Two steps of a small BERT, or as many as the case has, at any layout, on rows that the scenario
 *  itself deals. */
ScenarioFunction run_whole_model;

/** In the judge: checks the rows that the replicas read: as sets, and their order. */
void compare_rows(struct Trial *t, const Entry *got, const Entry *want);
/** In the judge: why numbers are wrong; asked before the mistakes that it replays. */
extern Finder *const replicas_reasons[];
/** In the judge: the same, asked after them. */
extern Finder *const replicas_more_reasons[];
/** In the judge: is another bucket of this round right on this rank? */
Finder other_bucket_is_right;
