/** @file
 * One outcome for all ranks: what goes wrong on any of them is said once, by rank 0.
 */
#pragma once

#include "comm/comm.h"

/** Did all ranks succeed? Collective.
 *  `good` says whether this one did; `problem` is set where it did not, and afterwards is that of the first rank that failed, on
 *  every rank. */
bool agree(Group *group, bool good, Problem *problem);

/** Do the kernels of all ranks run on devices of one type (see backend_device())? Collective.
 *  @return true if so; false with `problem` on every rank */
bool agree_on_device(Group *group, Problem *problem);
