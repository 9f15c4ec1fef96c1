/** @file
 * What a rank does while MPI waits: it lets others compute.
 */
#pragma once

#include "grader/protocol.h"

/** From now on each look of MPI for what it waits for is counted in `header->asked`. */
void yield_begin(RankHeader *header);
