/** @file
 * Launches of a lab's cases, and what they gave.
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

/** What one case has given. */
typedef struct Outcome {
    Ending ending;            /**< how it ended */
    char diagnosis[2560];     /**< who waits where, which rank ended how */
    struct Calls *calls;      /**< what the ranks have called of MPI */
    Entries wrote[MAX_RANKS]; /**< what each rank has written; empty of ranks that take no part */
} Outcome;

/** Where the time of launches goes, in seconds. */
typedef struct Times {
    double launch;  /**< until every rank of the first case was there */
    double running; /**< from then on until they had left */
} Times;

/** Seconds of real time that the cases of a lab may take, whatever its ranks seem to do. */
double lab_seconds(const Sandbox *sandbox);

enum { MAX_LAUNCHES = 2 * MAX_CASES }; /**< of a lab's cases */

/** The launches of a lab's cases, and what they gave. */
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

/** Was this runner built of the same protocol as the judge? Looks for the judge's own stamp in the program's file, before any
 *  of it is run; otherwise false with `problem`. */
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

/** Frees all that they gave, streams and calls too. */
void runs_free(Runs *runs);
