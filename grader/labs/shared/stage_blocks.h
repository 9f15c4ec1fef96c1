/** @file
 * Labs 12 to 14: the blocks of the stages of a pipeline.
 */
#pragma once

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"
#include "grader/labs/stages.h"

/** The ranks per stage, which is also the distance between neighbours in a pipeline. */
static inline int width_of(const Case *c)
{
    return c->world / c->pp;
}

/** The first block of this rank's stage, or -1 if the stage has none or is the first one. */
int first_block_of(const Trial *t);
/** Explains wrong numbers in a stage, or between two. */
Finder stages_are_wrong;
