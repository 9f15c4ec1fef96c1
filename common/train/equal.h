/** @file
 * Weights that should be equal on several ranks: are they?
 */
#pragma once

#include "base/problem.h"
#include "model/model.h"

/** Compares checksums of what every rank of a tp group holds in full over that group, and of all weights over the replicas.
 *  Collective over the world.
 *  @return false with `problem`, on every rank, which names the first parameter that differs */
bool weights_are_equal(Model *model, int64_t step, Problem *problem);
