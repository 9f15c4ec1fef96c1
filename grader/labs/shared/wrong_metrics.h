/** @file
 * Labs 11, 14 and 17: wrong sums of a few doubles over replicas or stages.
 */
#pragma once

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"

/** Explains a wrong sum of metrics; in lab 17, only one that also contains the previous result. */
Finder metrics_are_wrong;
/** The sum over this axis that this rank has made where the wrong numbers come from, or NULL. */
const Call *sum_over(const Evidence *e, GroupName axis);
/** How many numbers this rank has added up over this axis there. */
int64_t numbers_over(const Evidence *e, GroupName axis);
