/** @file
 * The training loop.
 */
#pragma once

#include <signal.h>

#include "comm/comm.h"
#include "data/data.h"
#include "train/config.h"

/** Trains as `config` says, on all ranks of `world`, and reports on rank 0. Collective. `stop` is
 *  looked at after each step: when it is set on any rank, all of them end after that step.
 *  @return false with `problem`, the same on every rank, on bad input */
bool train(TrainConfig *config, Group *world, const volatile sig_atomic_t *stop, Problem *problem);
