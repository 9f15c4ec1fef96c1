/** @file
 * The groups of a dry run, in which one process simulates a rank and no others exist.
 */
#pragma once

#include "comm/comm.h"

/** Makes a group of `size` ranks, of which only this process, `rank`, exists. Its exchanges check
 *  their arguments and count their bytes, but send nothing; what they would receive stays as it is.
 *  Sums of host numbers have this rank's term only. The caller frees it with group_free(). */
Group *simulated_group(const char *name, int rank, int size);
