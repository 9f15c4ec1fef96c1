/** @file
 * Lab 11: the rows that each replica reads, the mean of the gradients, the sums of the metrics, and two steps of the whole
 * model. Rows are judged as sets, so the judge does not run the sampler; see judge/diagnose/batch_rows.c.
 */
#pragma once

#include "grader/labs/lab.h"

enum {
    MOST_BUCKETS = 20, /**< of a round */
    ROUNDS = 3,        /**< of averaging, in a case */
};
enum {
    DEALING,     /**< the rows that replicas read */
    AVERAGING,   /**< buckets of gradients */
    COUNTING,    /**< metrics */
    WHOLE_MODEL, /**< two steps of a BERT */
};               /* the kinds of cases */

/** One call of the sampler. */
typedef struct Deal {
    int64_t rows; /**< below the number of replicas in some */
    Tail tail;    /**< what becomes of rows that do not fill a round */
    int epoch;    /**< from 0 */
    int seed;     /**< 1: another one than usual */
    bool again;   /**< what was dealt before, after other epochs */
} Deal;

/** The calls of a case by number, in the order in which they are made; false after the last. */
bool replica_deal(const Case *c, int i, Deal *deal);

/** Beside a Tail, the detail of a deal's label. */
enum {
    DEAL_TAIL = 3,            /**< the bits of the Tail */
    DEAL_OF_ANOTHER_SEED = 4, /**< than usual */
    DEAL_AGAIN = 8,           /**< dealt before */
};
/** What of a deal: the rows themselves, their order, where the sampler wrote outside, its call. */
Label replica_deal_label(What what, const Deal *deal);

/** How many buckets a round has. */
int replica_buckets(int round);

/** How many gradients bucket `bucket` has. */
int64_t replica_bucket_size(const Case *c, int bucket);
/** What the gradients are drawn by that a rank puts into a bucket in a round. */
void replica_bucket_key(char key[KEY_SIZE], int bucket, int round);

enum { EVALUATIONS = 5 }; /**< in a case */
/** The metrics of replica `replica` in an evaluation, from 0 on; the replicas' rows differ in number. */
Metrics replica_metrics(const Scenario *run, int replica, int evaluation);
/** Two steps of a small BERT on rows that are dealt by the scenario itself, at any layout. */
ScenarioFunction run_whole_model;
