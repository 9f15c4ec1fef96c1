/** @file
 * What the processes of a launch may take, in a sandbox or without one.
 */
#pragma once

#include "grader/judge/launch/sandbox.h"

enum {
    RANK_MEMORY = 512 << 20, /**< bytes that a rank may hold; cases take a few megabytes */
    GPU_MEMORY =
        2047
        << 20, /**< and where it computes on a GPU: CUDA keeps its kernels and tables on the host too */
    LOG_BYTES = 1 << 20 /**< of what the ranks print that is kept */
};

/** For the calling process and all that comes from it: no core files, files and stacks of a bounded size, addresses for the
 *  runner and RANK_MEMORY beside, and so many processes beside `already`.
 *  With `many_addresses` there is no limit on addresses: sanitizers reserve terabytes of them for what they know of each byte, and CUDA
 *  for the memory of all GPUs. */
void limits_set(int already, bool many_addresses);

/** Empties the environment but for what MPI and the system's libraries read: neither a seed nor anything else that make or
 *  the judge was told is there for a lab to read. */
void limits_environment(const Seen *seen);
