/** @file
 * The supervisor: a child of the judge that has mpirun and the ranks below it, and ends them when the judge says so or has ended.
 * In a sandbox it is process 1.
 */
#pragma once

#include "grader/judge/launch/sandbox.h"

/** What a supervisor is told. */
typedef struct Start {
    Place place;        /**< where the ranks run */
    Seen seen;          /**< paths as they see them */
    int ranks, already; /**< how many to start; processes that the user has already */
    bool
        many_addresses; /**< no limit on addresses: sanitizers reserve terabytes of them, and CUDA for the memory of all GPUs */
    int trouble; /**< a pipe: what cannot be done; closed without a word when mpirun starts */
    int said;    /**< a pipe: what mpirun and the ranks print */
} Start;

/** What the supervisor does with its life; `context` is its Start. The status is 0 if mpirun ended well. */
int supervise(void *context);

/** Removes a folder and the files in it. */
void remove_folder(const char *folder);
