/** @file
 * The launches of a lab's cases, and their results.
 */
#pragma once

#include "grader/judge/compare/stream.h"
#include "grader/judge/launch/launcher.h"
#include "grader/labs/lab.h"

/** How a case ended. */
typedef enum Ending {
    COMPLETE, /**< every rank ran it to completion */
    CRASHED,  /**< a rank ended during the case */
    HUNG,     /**< all ranks wait, and nothing can arrive */
    LOOPED,   /**< a rank computes, or sleeps outside MPI, forever */
    OVERDUE,  /**< the case had not ended when the lab exceeded lab_seconds() */
    STOPPED,  /**< the judge stopped it, because its processes exceeded their memory limit */
    NOT_RUN,  /**< the case was not run */
} Ending;

/** The result of one case. */
typedef struct Outcome {
    Ending ending;        /**< how it ended */
    double seconds;       /**< from its start to its end on the last rank, on the judge's clock */
    char diagnosis[2560]; /**< who waits where; how each rank ended */
    struct Calls *calls;  /**< the ranks' MPI calls */
    Entries wrote[MAX_RANKS]; /**< each rank's entries; empty for ranks that take no part */
} Outcome;

/** Where the time of launches goes, in seconds. */
typedef struct Times {
    double launch;  /**< until every rank was ready for the first case */
    double running; /**< from then until the ranks had left */
} Times;

/** Seconds of real time that the cases of a lab may take, whatever its ranks seem to do. */
double lab_seconds(const Sandbox *sandbox);

enum { MAX_LAUNCHES = 2 * MAX_CASES }; /**< of a lab's cases */

/** The launches of a lab's cases, and their results. */
typedef struct Runs {
    const char *runner;         /**< the program */
    int ranks;                  /**< of each launch */
    const Case *cases;          /**< [count] the cases; the caller's */
    int count;                  /**< of cases */
    int next;                   /**< the first case that run_cases() will run; in the end `count` */
    Outcome outcome[MAX_CASES]; /**< [count] the result of each case */
    Launch *launch[MAX_LAUNCHES]; /**< [launches] the shared memory of each launch */
    int launches;                 /**< number of launches */
    double cpu_limit, until;      /**< as in runs_prepare() */
    Sandbox *sandbox;             /**< for all launches */
    double begun, up; /**< when the running launch began, and when its ranks were ready (or 0) */
    Times times;      /**< of all launches */
    int long_waits;   /**< hung cases that took the judge long to recognise */
    /** the ending that kept later cases from running: LOOPED, HUNG or OVERDUE; COMPLETE if none */
    Ending cut_short;
    bool unfit; /**< the lab keeps its runner from starting, as run_cases() has found out */
} Runs;

/** Was this runner built with the same protocol as the judge? Searches the program's file for the
 *  judge's own stamp before running any of it. Otherwise returns false with `problem`. */
bool stamp_fits(const char *runner, Problem *problem);

/** Prepares to run the cases on `runner`, in launches of `ranks` ranks. Between two MPI calls, a
 *  rank may compute for `cpu_limit` seconds; 0: derived from the case. No rank runs after `until`,
 *  on clock_now(). `runner` and `cases` must outlive the record.
 *  @return a record that the caller frees with runs_free() */
Runs *runs_prepare(const char *runner, int ranks, const Case *cases, int count, double cpu_limit,
                   double until, Sandbox *sandbox);

/** Launches the runner and runs the cases from runs->next on, up to the first that does not
 *  complete. The caller may then judge these cases, and call again for the others. After an endless
 *  loop, several long waits or the time limit, sets runs->next to runs->count: no more cases run.
 *  @return false with `problem` if nothing can be launched; runs->unfit says whether the lab is the
 *  reason */
bool run_cases(Runs *runs, Problem *problem);

/** Turns the outcome into one of a case that did not end, because the ranks wrote more than the
 *  judge can read in time. */
void outcome_forget(Outcome *outcome);

/** Frees everything, streams and calls included. */
void runs_free(Runs *runs);
