/** @file
 * The launches of a lab's cases, and their results.
 */
#pragma once

#include "grader/judge/compare/stream.h"
#include "grader/judge/launch/launcher.h"
#include "grader/labs/lab.h"

/** How a case ended. */
typedef enum Ending {
    COMPLETE, /**< every rank came to its end */
    CRASHED,  /**< a rank ended before it */
    HUNG,     /**< all ranks wait, and nothing can come */
    LOOPED,   /**< a rank computes for ever */
    OVERDUE,  /**< the lab has taken more than lab_seconds(), and this case had not ended */
    STOPPED,  /**< the grader was told to end */
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

/** Seconds of real time that the cases of a lab may take, whatever its ranks seem to do. */
double lab_seconds(const Sandbox *sandbox);

enum { MAX_LAUNCHES = 2 * MAX_CASES }; /**< of a lab's cases */

/** The launches of a lab's cases, and their results. */
typedef struct Runs {
    int count;                    /**< of cases */
    Outcome outcome[MAX_CASES];   /**< what each case has given */
    Launch *launch[MAX_LAUNCHES]; /**< what the ranks of each launch have written */
    int launches;                 /**< how many there were */
    double cpu_limit, until;      /**< as in run_cases() */
    Sandbox *sandbox;             /**< for all launches */
    double begun, up; /**< of the launch that is under way; up is 0 before its ranks are there */
    Times times;      /**< of all launches */
    bool looped;      /**< a rank computes for ever, or time is over: the rest is not run */
} Runs;

/** Was this runner built with the same protocol as the judge? Searches the program's file for the
 *  judge's own stamp before running any of it. Otherwise returns false with `problem`. */
bool stamp_fits(const char *runner, Problem *problem);

/** Launches `runner` and runs the cases, again with what is left after a crash or a hang; after an endless loop, which takes
 *  seconds, nothing more.
 *  `cpu_limit` are the seconds that a rank may compute between two calls of MPI; 0: derived from the case. No rank runs after `until`,
 *  on clock_now().
 *  @return NULL with `problem` when nothing can be launched; else to be freed with runs_free() */
Runs *run_cases(const char *runner, int ranks, const Case *cases, int count, double cpu_limit,
                double until, Sandbox *sandbox, Problem *problem);

/** The ranks have written more than can be read in time: the case counts as one that did not end. */
void outcome_forget(Outcome *outcome);

/** Frees everything, streams and calls included. */
void runs_free(Runs *runs);
