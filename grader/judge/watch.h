/** @file
 * Watching the ranks of a case: are all of them blocked, does one compute for ever, how did one end?
 */
#ifndef BALISE_GRADER_WATCH_H
#define BALISE_GRADER_WATCH_H

#include "grader/judge/judge.h"

typedef struct Watch {
    const Launch *launch;
    Case c;
    int posted;
    int64_t events;
    double cpu_limit;
    double looked;         /**< when the ranks were last looked at */
    double since;          /**< when the last MPI call was entered or left */
    double cpu[MAX_RANKS]; /**< CPU seconds of each rank soon after; -1: not read yet */
} Watch;

/** Seconds that a rank may compute in this case between two calls of MPI: a hundred times what plain loops
 * take for all of it, and two. */
double watch_cpu_limit(const Case *c);

Watch watch_begin(const Launch *launch, const Case *c, int posted, double cpu_limit);

/** COMPLETE while there is hope; HUNG or LOOPED, with the story of who waits where, when there is none. */
Ending watch_look(Watch *watch, char *story, size_t size);

/** The story of a case whose ranks have ended before it. */
void watch_crash(const Watch *watch, char *story, size_t size);

#endif
