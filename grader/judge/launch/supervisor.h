/** @file
 * The supervisor: a child of the judge and the parent of mpirun and the ranks. It ends them when
 * the judge asks it to or has ended. In a sandbox it is process 1.
 */
#pragma once

#include "grader/judge/launch/sandbox.h"

/** The supervisor's arguments. */
typedef struct Start {
    Place place;        /**< where the ranks run */
    Seen seen;          /**< paths inside */
    int ranks, already; /**< ranks to start; threads that the user has already */
    bool
        many_addresses; /**< no limit on address space: sanitizers reserve terabytes, and CUDA the memory of all GPUs */
    int trouble; /**< a pipe for errors; closed without one when mpirun starts */
    int said;    /**< a pipe for the output of mpirun and the ranks */
} Start;

/** The supervisor's main function; `context` is its Start. The status is 0 if mpirun succeeded. */
int supervise(void *context);

/** Removes a folder and the files in it. */
void remove_folder(const char *folder);
