/** @file
 * What every program of ranks does: build/train, and build/story. Whoever calls program_begin() gets
 * run_ends() and run_todo() of base/run.h, too.
 */
#pragma once

#include <signal.h>

#include "base/problem.h"
#include "comm/comm.h"

enum { PROGRAM_BAD_INPUT = 2 }; /**< the exit status on bad input and on misuse */

/** Set by the signals that ask a run to end early: SIGINT, SIGTERM, SIGUSR1. */
extern volatile sig_atomic_t program_stop;

/** The exit status of a program that only checks its options: prints `problem` unless they are
 *  `good`. */
int program_dry(bool good, const Problem *problem);

/** Starts the backend and MPI. Returns the group of all ranks, for program_end(). */
Group *program_begin(int argc, char **argv);

/** Can the ranks compute, on devices of one type? Collective. Otherwise false with `problem`, on
 *  every rank. */
bool program_devices(Group *world, Problem *problem);

/** Warns on rank 0 if the kernels are much slower than they should be. */
void program_warn(Group *world);

/** Rank 0 prints `problem` unless the run was `good`. Ends MPI. @return the exit status */
int program_end(Group *world, bool good, const Problem *problem);
