/** @file
 * Watches the ranks of a case: are all of them blocked, does one loop forever, how did one end?
 */
#pragma once

#include "grader/judge/launch/outcome.h"

/** What is known about the ranks of a running case. */
typedef struct Watch {
    const Launch *launch;  /**< shared with the ranks */
    const int *pid;        /**< process ID of each rank */
    Case c;                /**< the case */
    int posted;            /**< its number in this launch, from 1 */
    int64_t events;        /**< MPI calls entered and left by all ranks, at the last look */
    double cpu_limit;      /**< as given; 0: derived */
    double derived;        /**< computed when needed; until then 0 */
    double patience;       /**< a factor for the time limits: larger with sanitizers or on a GPU */
    bool waited_long;      /**< the case hung, but it took many polls to find that out */
    double looked;         /**< time of the last look */
    double since;          /**< time of the last MPI call entered or left */
    double cpu[MAX_RANKS]; /**< each rank's CPU seconds soon after `since`; -1: unread */
    int64_t resident[MAX_RANKS];   /**< bytes that each rank held then */
    int asleep[MAX_RANKS];         /**< consecutive looks that found the rank asleep */
    int64_t asked[MAX_RANKS];      /**< number of MPI's polls at `since` */
    int64_t asked_last[MAX_RANKS]; /**< number of MPI's polls at the last look */
} Watch;

/** Begins to watch a posted case. `cpu_limit` is the time in seconds that a rank may compute
 *  between two MPI calls; 0: derived, when needed, from the time that the judge's own plain layers
 *  take. It is multiplied by `patience`. `launch` and `pid` must outlive the watch. */
Watch watch_begin(const Launch *launch, const int *pid, const Case *c, int posted, double cpu_limit,
                  double patience);

/** Returns COMPLETE while the ranks can still progress; otherwise HUNG, LOOPED or CRASHED, with a
 *  diagnosis of who waits where. If stderr is a terminal, explains long waits there. */
Ending watch_look(Watch *watch, char *diagnosis, size_t size);

/** Writes the diagnosis of a case that must end now, because the lab's cases have taken more than
 *  `seconds`: what each rank is doing. */
void watch_overdue(const Watch *watch, double seconds, char *diagnosis, size_t size);

/** Writes the diagnosis of a case in which a rank ended early. */
void watch_crash(const Watch *watch, char *diagnosis, size_t size);
