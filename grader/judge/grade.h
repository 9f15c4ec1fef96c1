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

/** The grader's options. */
typedef struct Options {
    int lab;              /**< 0: all */
    int only_case;        /**< -1: all */
    uint64_t seed;        /**< determines the cases */
    const char *author;   /**< whose runners: student, solution, mine (on own earlier labs) */
    const char *runners;  /**< folder of the runners */
    const char *start;    /**< folder of the start files */
    const char *labs;     /**< folder of the student's files */
    const char *own;      /**< with author "mine": the labs that were started: "1 2 5" */
    const char *cases;    /**< the instructor's file of cases and points, or NULL */
    Local local;          /**< the contents of `cases` */
    double cpu_limit;     /**< per stretch between two MPI calls; 0: derived from the case */
    bool margins;         /**< print each check's largest error relative to its tolerance */
    double since;         /**< wall-clock time when make began; 0: print no times */
    const char *picture;  /**< instead, write one case's results to this file; NULL: no */
    bool short_lived;     /**< the runners' folder is temporary: do not refer anyone to it */
    bool list;            /**< instead, print the labs as JSON */
    const char *may_send; /**< instead, print what the lab may send at these sizes; NULL: no */
    bool trace;           /**< instead, print the calls of one case */
    int debug;            /**< instead, run gdb on this rank; -1: no */
    const char *stops;    /**< the functions at which gdb stops */
    const char *format[MAX_OUTPUTS], *out[MAX_OUTPUTS]; /**< output files and their formats */
    int formats, outs; /**< how many of each were given; must be equal */
    Sandbox *sandbox;  /**< shared by all launches of this run */
} Options;

/** Grades result->lab and fills in the rest of the result. */
void grade_lab(LabResult *result, const Options *o);

/** Runs a lab's cases on this runner, with as many ranks as any of its cases needs. Exits on
 *  failure. */
Runs *run_or_give_up(const Options *o, const char *runner, const Case *cases, int count, int ranks);

/** Did make fail to build this runner? If so, puts its message into the result's remark. */
bool has_no_runner(LabResult *result, const char *runner);

/** The sum of a lab's points. */
int lab_worth(const Lab *lab);

/** With author "mine": writes which earlier labs are the student's, and which of them do not pass.
 * `before` [count] are this run's results so far. */
void tell_what_it_stands_on(LabResult *result, const Options *o, const LabResult *before,
                            int count);

/** Is the student's file as handed out, with nothing to judge? If so, notes that in the result. */
bool is_untouched(LabResult *result, const Options *o);
/** Marks failed checks as "to do" if their functions (Lab.written) are as in the start file. */
void look_for_handed_out(LabResult *result, const Options *o);
