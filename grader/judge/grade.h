/** @file
 * Grades one lab: does it exist, was it started, and are the results of its cases right?
 */
#pragma once

#include "grader/judge/compare/expected.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/local.h"

enum {
    CANNOT_GRADE = 2, /**< the exit status if grading was not possible */
    MAX_OUTPUTS = 6,  /**< output files */
};

/** What --format or --out has named, in this order. */
typedef struct Outputs {
    const char *name[MAX_OUTPUTS]; /**< formats or files */
    int count;                     /**< how many */
} Outputs;

/** The grader's options. */
typedef struct Options {
    int lab;              /**< 0: all */
    int part;             /**< the part of the course to grade if `lab` is 0 */
    int only_case;        /**< -1: all */
    uint64_t seed;        /**< of the cases */
    const char *author;   /**< whose runners: student, solution, or mine (on the student's labs) */
    const char *runners;  /**< their folder */
    const char *start;    /**< folder of the start files */
    const char *labs;     /**< folder of the student's files */
    const char *own;      /**< with author "mine": the started labs, "1 2 5" */
    const char *cases;    /**< the instructor's file of cases and points, or NULL */
    Local local;          /**< the contents of that file */
    double cpu_limit;     /**< seconds between two MPI calls; 0: derived from the case */
    bool margins;         /**< print the largest error of each check relative to the tolerance */
    double since;         /**< when make began, in seconds since 1970; 0: print no times */
    const char *make;     /**< for end_make(), if points are missing; NULL: no */
    const char *picture;  /**< write the results of one case to this file instead; NULL: no */
    bool short_lived;     /**< the runners' folder is removed after this run; do not mention it */
    bool list;            /**< print the labs as JSON instead */
    const char *may_send; /**< print what the lab may send at these sizes instead; NULL: no */
    bool trace;           /**< print the calls of one case instead */
    const char
        *cluster; /**< for `trace` and `picture`: the output of common/bench/clusters.py, or NULL */
    bool measure; /**< print the number that students predict instead */
    bool throughput;       /**< time a training run instead */
    bool tape;             /**< print a rank's tape in one case instead */
    bool debug;            /**< run gdb on a rank instead */
    int rank;              /**< for `tape` and `debug`: which one */
    const char *stops;     /**< the functions in which gdb stops, separated by blanks */
    Outputs formats, outs; /**< the files for the verdict, each in its format */
    Sandbox *sandbox;      /**< for all launches of this run */
} Options;

/** Ends the program if the lab has no case that `o` asks for. Call this before anything is
 *  written. */
void must_have_case(const Lab *lab, const Options *o);

/** Makes the make with this process id exit with status 1 once this program has ended with status 0.
 *  @return false if there is no such make, or if it ignores SIGQUIT, as in the background of a script */
bool end_make(const char *make);

/** Grades result->lab and fills in the rest of the result. */
void grade_lab(LabResult *result, const Options *o);

/** Runs the cases of a lab on this runner, in launches of `ranks` ranks; ends the program if
 *  nothing can be launched. No rank runs after `until`, on clock_now(). The caller frees the result
 *  with runs_free(). */
Runs *run_or_give_up(const Options *o, const char *runner, const Case *cases, int count, int ranks,
                     double until);

/** Did make fail to build this runner? If so, puts its message into the result's remark. */
bool has_no_runner(LabResult *result, const char *runner);

/** The sum of a lab's points. */
int lab_worth(const Lab *lab);

/** With author "mine": writes to the result which earlier labs are the student's, and which of them
 *  do not pass. `before` [count] are this run's results so far. */
void tell_what_it_stands_on(LabResult *result, const Options *o, const LabResult *before,
                            int count);

/** Notes in the result whether the student's file is still the start file. Returns whether there is
 *  nothing to judge, because that start file has no TODO. */
bool is_untouched(LabResult *result, const Options *o);
/** Marks failed checks as "to do" if their functions (Lab.written) are as in the start file. */
void look_for_handed_out(LabResult *result, const Options *o);
