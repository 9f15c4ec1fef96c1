/** @file
 * Labs 11, 14 and 17: wrong sums of a few doubles over replicas or stages.
 */
#pragma once

#include "grader/judge/diagnose/evidence.h"

/** Explains a wrong sum of metrics; in lab 17, only one that also contains the previous result. */
Finder metrics_are_wrong;
