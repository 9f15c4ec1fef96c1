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
    int lab;             /**< 0: all */
    int part;            /**< of the course, whose labs are graded where lab is 0 */
    int only_case;       /**< -1: all */
    uint64_t seed;       /**< of the cases */
    const char *author;  /**< whose runners: student, solution, mine (on their own earlier labs) */
    const char *runners; /**< their folder */
    const char *start;   /**< folder of the start files */
    const char *labs;    /**< folder of the student's files */
    const char *own;     /**< with author "mine": the labs that were started, "1 2 5" */
    const char *cases;   /**< the instructor's file of cases and points, or NULL */
    Local local;         /**< what it says */
    double cpu_limit;    /**< seconds between two calls of MPI; 0: derived from the case */
    bool margins;        /**< print the largest error of each check in units of what is allowed */
    double since;        /**< when make began, by the calendar's clock; 0: no times are told */
    const char *picture; /**< write what one case gave to this file instead; NULL: no */
    bool short_lived; /**< the runners' folder goes when this run has ended: nobody is sent there */
    bool list;        /**< print the labs as JSON instead */
    const char *may_send; /**< print what the lab may send at these sizes instead; NULL: no */
    bool trace;           /**< print the calls of one case instead */
    bool measure;         /**< print the number that students predict instead */
    int debug;            /**< the rank that gdb shall look at instead; -1: none */
    const char *stops;    /**< the functions in which it stops then */
    const char *format[MAX_OUTPUTS],
        *out[MAX_OUTPUTS]; /**< files for the verdict, each in its format */
    int formats, outs;     /**< how many of each were given: as many of one as of the other */
    Sandbox *sandbox;      /**< for all launches of this run */
} Options;

/** Grades result->lab and fills in the rest of the result. */
void grade_lab(LabResult *result, const Options *o);

/** Runs the cases of a lab on this runner, with as many ranks as the lab ever needs, or gives up. They end by
 *  `until`. */
Runs *run_or_give_up(const Options *o, const char *runner, const Case *cases, int count, int ranks,
                     double until);

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
