/** @file
 * The launches of a lab's cases, and their results.
 */
#pragma once

#include "grader/judge/compare/stream.h"
#include "grader/judge/launch/launcher.h"
#include "grader/labs/lab.h"

/** How a case ended. */
typedef enum Ending {
    COMPLETE, /**< every rank completed it */
    CRASHED,  /**< a rank ended early */
    HUNG,     /**< all ranks wait, and nothing can arrive */
    LOOPED,   /**< a rank computes forever */
    STOPPED,  /**< the grader was asked to end */
    NOT_RUN,  /**< it was not run */
} Ending;

/** The result of one case. */
typedef struct Outcome {
    Ending ending;            /**< how it ended */
    char diagnosis[2560];     /**< who waits where; how each rank ended */
    struct Calls *calls;      /**< the ranks' MPI calls */
    Entries wrote[MAX_RANKS]; /**< each rank's entries; empty for ranks that take no part */
} Outcome;

/** How the time of launches divides, in seconds. */
typedef struct Times {
    double launch;  /**< until every rank was ready for the first case */
    double running; /**< from then until the ranks had left */
} Times;

enum { MAX_LAUNCHES = 2 * MAX_CASES }; /**< of a lab's cases */

/** The launches of a lab's cases, and their results. */
typedef struct Runs {
    int count;                    /**< number of cases */
    Outcome outcome[MAX_CASES];   /**< of each case */
    Launch *launch[MAX_LAUNCHES]; /**< what the ranks of each launch wrote */
    int launches;                 /**< number of launches */
    double cpu_limit;             /**< as in run_cases() */
    Sandbox *sandbox;             /**< shared by all launches */
    double begun, up;             /**< of the current launch; up is 0 until its ranks are ready */
    Times times;                  /**< of all launches */
    bool looped;                  /**< a rank looped forever, so the other cases are not run */
} Runs;

/** Was this runner built with the same protocol as the judge? Searches the program's file for the
 *  judge's own stamp before running any of it. Otherwise returns false with `problem`. */
bool stamp_fits(const char *runner, Problem *problem);

/** Launches `runner` and runs the cases. After a crash or a hang, launches it again for the
 *  remaining ones; after an endless loop, which takes seconds, stops. `cpu_limit` is the time in
 *  seconds that a rank may compute between two MPI calls; 0: derived from the case.
 *  @return NULL with `problem` if nothing can be launched; otherwise a record that the caller frees
 *  with runs_free() */
Runs *run_cases(const char *runner, int ranks, const Case *cases, int count, double cpu_limit,
                Sandbox *sandbox, Problem *problem);

/** Frees everything, streams and calls included. */
void runs_free(Runs *runs);
