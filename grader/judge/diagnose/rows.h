/** @file
 * What the ranks of lab 11 have dealt: rows.c judges what each call gives, shuffling.c its order, beside that of others.
 */
#ifndef BALISE_GRADER_ROWS_H
#define BALISE_GRADER_ROWS_H

#include "grader/judge/diagnose/trial.h"
#include "grader/labs/replicas.h"

/** Where the numbers of an entry stand. */
enum {
    LENGTH = 0,       /**< the returned length */
    ROOM = 1,         /**< for how many rows `mine` has room */
    MINE = 2,         /**< the first of the rows */
    MOST_ROWS = 4096, /**< of the data */
};

/** What the ranks have dealt in one call. */
typedef struct Dealt {
    Deal deal;                  /**< what was asked for */
    const Entry *of[MAX_RANKS]; /**< what each rank has given */
    int times[MOST_ROWS];       /**< how often each row is read, over the replicas */
    int replicas[MOST_ROWS];    /**< and by how many of them */
} Dealt;

/** The length that a rank has returned. */
int64_t length_of(const Entry *e);
/** The order that a rank has filled in, or NULL where it did not use the room for it. */
const double *order_of(const Trial *t, const Deal *deal, int rank);
/** Finds what the ranks have dealt for dealt->deal. @return false where some rank did not come to it */
bool find_dealt(const Trial *t, Dealt *dealt);
/** Fills in `times` and `replicas` of what was found and is sound. */
void count_rows(const Trial *t, Dealt *dealt);
/** What is wrong with a rank's rows by themselves and beside those of its replica, or NULL. The sentence holds until the next call. */
const char *wrong_with_one(const Trial *t, const Dealt *dealt, int rank);

/** What is wrong with the order of rows that are sound and counted: in itself, or beside other epochs and seeds; or NULL. */
const char *wrong_order(const Trial *t, const Dealt *dealt);
/** Have ranks filled in different orders? */
bool shuffled_differently(const Trial *t, const Deal *deal);

#endif
