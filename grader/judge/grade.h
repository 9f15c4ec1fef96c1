/** @file
 * Grading one lab: is it there, was it started, what do its cases give?
 */
#ifndef BALISE_GRADER_GRADE_H
#define BALISE_GRADER_GRADE_H

#include "grader/judge/judge.h"

enum { CANNOT_GRADE = 2 };

typedef struct Options {
    int lab;       /**< 0: all */
    int only_case; /**< -1: all */
    uint64_t seed;
    const char
        *author; /**< whose runners: student, solution, mine (the student's earlier labs below it), ... */
    const char *runners; /**< their folder */
    const char *start;   /**< folder of the start files */
    const char *labs;    /**< folder of the student's files */
    const char *own;     /**< with author "mine": the labs that were started, "1 2 5" */
    double cpu_limit;    /**< seconds a rank may compute between two calls of MPI; 0: derived from the case */
    bool margins;
} Options;

/** Ends with `problem` on stderr: it could not be graded. */
_Noreturn void give_up(const Problem *problem);

void grade_lab(LabResult *result, const Options *o);

/** With author "mine": says which earlier labs are the student's, and which of them do not pass their own
 * checks.
 *  @param before the results of this run so far */
void tell_what_it_stands_on(LabResult *result, const Options *o, const LabResult *before, int count);

#endif
