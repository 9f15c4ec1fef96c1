/** @file
 * The rows that lab 11's ranks dealt in one call of the sampler. batch_rows.c judges them as sets;
 * row_order.c judges their order.
 */
#pragma once

#include "grader/judge/diagnose/trial.h"
#include "grader/labs/replicas.h"

/** The positions of numbers in an entry. */
enum {
    LENGTH, /**< the returned length */
    ROOM,   /**< the capacity of `mine` */
    MINE,   /**< the first row */
};
enum { MOST_ROWS = 4096 }; /**< in the data set */

/** What the ranks dealt in one call. */
typedef struct Dealt {
    Deal deal;                  /**< the request */
    const Entry *of[MAX_RANKS]; /**< the entry of each rank */
    int times[MOST_ROWS];       /**< how many times each row is read, over all replicas */
    int replicas[MOST_ROWS];    /**< how many replicas read each row */
} Dealt;

/** The length that a rank returned. */
static inline int64_t length_of(const Entry *e)
{
    return (int64_t)numbers_of(e)[LENGTH];
}

/** Finds each rank's entry about `dealt->deal`; false if one is missing. */
bool find_dealt(const Trial *t, Dealt *dealt);
/** Did two ranks return the same rows, in the same order? */
bool same_rows(const Entry *a, const Entry *b);
/** What is wrong with some rank's record, whichever rows it should have read; NULL if nothing
 *  is. */
const char *wrong_on_ranks(const Trial *t, const Dealt *dealt);
/** Counts how many times each row is read: Dealt.times and Dealt.replicas. */
void count_rows(const Trial *t, Dealt *dealt);

/** The order that a rank filled in, or NULL if that is not a permutation of all rows. */
const double *order_of(const Trial *t, const Deal *deal, int rank);
/** Did two ranks fill in different orders? */
bool shuffled_differently(const Trial *t, const Deal *deal);
/** What is wrong with the order of the rows, within a call and between calls; or NULL. */
const char *wrong_order(const Trial *t, const Dealt *dealt);
