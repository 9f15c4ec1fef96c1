/** @file
 * Code shared by the programs that run under mpirun: build/train and build/story. program.c also
 * defines run_ends() and run_todo() of base/run.h.
 */
#pragma once

#include <signal.h>

#include "base/problem.h"
#include "comm/comm.h"

enum { PROGRAM_BAD_INPUT = 2 }; /**< the exit status on bad input and on misuse */

/** Nonzero after a signal that asks the run to end early: SIGINT, SIGTERM or SIGUSR1. */
extern volatile sig_atomic_t program_stop;

/** For a program that only checks its options: prints `problem` unless they are `good`.
 *  @return the exit status */
int program_dry(bool good, const Problem *problem);

/** Installs the signal handlers and starts the backend and MPI. @return the group of all ranks,
 *  which program_end() frees */
Group *program_begin(int argc, char **argv);

/** Can all ranks compute, and on devices of one type? Collective. Otherwise returns false with
 *  `problem`, on every rank. */
bool program_devices(Group *world, Problem *problem);

/** Warns on rank 0 if the kernels are much slower than they should be. */
void program_warn(Group *world);

/** Rank 0 prints `problem` unless the run was `good`. Frees `world` and ends MPI. @return the exit
 *  status */
int program_end(Group *world, bool good, const Problem *problem);
