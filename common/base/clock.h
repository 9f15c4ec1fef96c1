/** @file
 * The clock that all times are taken with: it only runs forward.
 */
#pragma once

#include <time.h>

/** Seconds since some moment in the past. */
static inline double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
