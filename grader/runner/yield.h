/** @file
 * What a rank does while MPI waits: it lets others compute.
 */
#ifndef BALISE_GRADER_YIELD_H
#define BALISE_GRADER_YIELD_H

#include "grader/protocol.h"

/** From now on each look of MPI for what it waits for is counted in `header->asked`. */
void yield_begin(RankHeader *header);

#endif
