/** @file
 * Lab 17: what wrong gradients and wrong weights are made of.
 */
#pragma once

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/sharded.h"

/** Do weights still have their old values, or are they mixed, or stepped with another gradient? */
Finder weights_are_stale;
/** Are gradients divided by rank, or reduced into another place than the replica's part? */
Finder gradients_are_elsewhere;
/** Are the weights right in this replica's part, but not everywhere? */
Finder only_own_part_is_right;
