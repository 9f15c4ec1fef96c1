/* Philox keys, and numbers by index. */
#include "base/philox.h"

#include <math.h>

/* The finaliser of SplitMix64 (Steele et al., 2014): every bit of the input affects every bit of
 * the result. */
static uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

PhiloxKey philox_key(uint64_t seed, const char *name, uint64_t step)
{
    uint64_t hash = mix(seed);
    for (; *name; name++)
        hash = mix(hash ^ (unsigned char)*name);
    hash = mix(hash ^ mix(step));
    return (PhiloxKey){{(uint32_t)hash, (uint32_t)(hash >> 32)}};
}

double philox_uniform_at(PhiloxKey key, uint64_t index)
{
    uint64_t block = index / 4;
    return philox_uniform(
        philox(key, (uint32_t)block, (uint32_t)(block >> 32), 0, 0).word[index % 4]);
}

double philox_normal_at(PhiloxKey key, uint64_t index)
{
    const double two_pi = 6.283185307179586;
    uint64_t block = index / 2;
    int half = (int)(index % 2) * 2;
    Philox4 r = philox(key, (uint32_t)block, (uint32_t)(block >> 32), 1, 0);
    double radius = sqrt(-2.0 * log(1.0 - philox_uniform(r.word[half])));
    return radius * cos(two_pi * philox_uniform(r.word[half + 1]));
}
