/** @file
 * Launches of a lab's cases, and what they gave.
 */
#pragma once

#include "grader/judge/compare/expected.h"
#include "grader/judge/launch/launcher.h"

/** How a case ended. */
typedef enum Ending {
    COMPLETE, /**< every rank came to its end */
    CRASHED,  /**< a rank ended before it */
    HUNG,     /**< all ranks wait, and nothing can come */
    LOOPED,   /**< a rank computes for ever */
    STOPPED,  /**< the grader was told to end */
    NOT_RUN,  /**< it was not played */
} Ending;

/** What one case has given. */
typedef struct Outcome {
    Ending ending;            /**< how it ended */
    char diagnosis[2560];     /**< who waits where, which rank ended how */
    struct Calls *calls;      /**< what the ranks have called of MPI */
    Entries wrote[MAX_RANKS]; /**< what each rank has written; empty of ranks that take no part */
} Outcome;

/** The launches of a lab's cases, and what they gave. */
typedef struct Runs Runs;

/** Was this runner built of the same protocol as the judge? Looks for the judge's own stamp in the program's file, before any
 *  of it is run; otherwise false with `problem`. */
bool stamp_fits(const char *runner, Problem *problem);

/** Launches `runner` and plays the cases, again with what is left after a crash or a hang.
 *  `cpu_limit` are the seconds that a rank may compute between two calls of MPI; 0: derived from the case.
 *  @return NULL with `problem` when nothing can be launched */
Runs *run_cases(const char *runner, int ranks, const Case *cases, int count, double cpu_limit,
                Sandbox *sandbox, Problem *problem);
/** What case i has given. Belongs to `runs`. */
const Outcome *run_outcome(const Runs *runs, int i);

/** Where the time of launches goes, in seconds. */
typedef struct Times {
    double launch;  /**< until every rank of the first case was there */
    double playing; /**< from then on until they had left */
} Times;
/** Adds what these launches took. */
void runs_add_times(const Runs *runs, Times *times);
/** Frees all that they gave, streams and calls too. */
void runs_free(Runs *runs);
