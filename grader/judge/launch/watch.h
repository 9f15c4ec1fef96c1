/** @file
 * Watching the ranks of a case: are all of them blocked, does one compute for ever, how did one end?
 */
#pragma once

#include "grader/judge/launch/outcome.h"

/** What is known of ranks that run a case. */
typedef struct Watch {
    const Launch *launch; /**< shared with the ranks */
    const int *pid;       /**< of each rank */
    Case c;               /**< the case */
    int posted;           /**< its number in this launch, from 1 */
    int64_t events;       /**< MPI calls entered and left by all ranks, when last looked at */
    double cpu_limit;     /**< as given; 0: derived */
    double derived;       /**< 0: not needed yet */
    double patience; /**< times the limit: less once a rank of this lab has computed for ever */
    double looked;   /**< when the ranks were last looked at */
    double since;    /**< when the last MPI call was entered or left */
    double cpu[MAX_RANKS];         /**< CPU seconds of each rank soon after; -1: not read yet */
    int64_t resident[MAX_RANKS];   /**< bytes that each rank held then */
    int asleep[MAX_RANKS];         /**< looks, one after the other, that found the rank asleep */
    int64_t asked[MAX_RANKS];      /**< how often MPI had looked soon after the last event */
    int64_t asked_last[MAX_RANKS]; /**< and when last seen */
} Watch;

/** Begins to watch a case that was posted. `cpu_limit` are the seconds that a rank may compute between two
 *  calls of MPI; 0: derived from what the judge's own plain layers take, when it matters; `patience`
 *  is multiplied with it. `launch` and `pid` must outlive the watch. */
Watch watch_begin(const Launch *launch, const int *pid, const Case *c, int posted, double cpu_limit,
                  double patience);

/** COMPLETE while the ranks can still go on; HUNG or LOOPED, with the diagnosis of who waits where, when
 *  they cannot. What lasts is told on stderr, where that is a terminal. */
Ending watch_look(Watch *watch, char *diagnosis, size_t size);

/** The diagnosis of a case that is to end now: what each rank is at. */
void watch_overdue(const Watch *watch, char *diagnosis, size_t size);

/** The diagnosis of a case whose ranks have ended before it. */
void watch_crash(const Watch *watch, char *diagnosis, size_t size);
