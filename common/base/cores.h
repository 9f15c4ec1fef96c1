/** @file
 * The processor cores that this process may use: taskset, Slurm or a container may bind the process
 * to some of the machine's cores.
 */
#pragma once

#include <stdint.h>

#include "base/cxx.h"

BEGIN_C

enum {
    MOST_CORES = 8192,            /**< the most cores that Linux supports */
    CORE_WORDS = MOST_CORES / 64, /**< the number of words in a set */
};

/** A set of cores, one bit each: the union of two sets is the bitwise OR of their words. */
typedef struct Cores {
    uint64_t words[CORE_WORDS]; /**< core i is bit i % 64 of word i / 64 */
} Cores;

/** The cores on which the calling thread may run. */
Cores cores_usable(void);

/** The number of cores in the set. */
int cores_count(const Cores *cores);

END_C
