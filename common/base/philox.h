/** @file
 * Philox 4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy
 * as 1, 2, 3" (SC'11). A number depends only on its key and its counter, so every layout of ranks
 * draws the same numbers.
 */
#pragma once

#include <stdint.h>

#include "base/cxx.h"

BEGIN_C

/** The 64-bit key of a stream of random numbers. */
typedef struct PhiloxKey {
    uint32_t word[2]; /**< lower word first */
} PhiloxKey;

/** The four numbers of one counter. */
typedef struct Philox4 {
    uint32_t word[4]; /**< each uniform in 0..2^32-1 */
} Philox4;

/** The four 32-bit numbers at the 128-bit counter (c0, c1, c2, c3). */
HOST_AND_DEVICE static inline Philox4 philox(PhiloxKey key, uint32_t c0, uint32_t c1, uint32_t c2,
                                             uint32_t c3)
{
    uint32_t k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const Philox4 four = {{c0, c1, c2, c3}};
    return four;
}

/** A key for each use of randomness: the run's `seed`, the `name` of what is drawn
 *  ("block.0.up.weight"), and `step` if it changes from step to step (otherwise 0). */
PhiloxKey philox_key(uint64_t seed, const char *name, uint64_t step);

/** A number in [0, 1): a multiple of 2^-24, so it is exact in single precision. */
static inline double philox_uniform(uint32_t word)
{
    return (word >> 8) * 0x1p-24;
}

/** One uniform number in [0, 1) for element `index` of the stream of `key`. */
double philox_uniform_at(PhiloxKey key, uint64_t index);

/** One number of the standard normal distribution for element `index` (Box-Muller). */
double philox_normal_at(PhiloxKey key, uint64_t index);

END_C
