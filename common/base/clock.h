/** @file
 * The clock for all times. It never runs backwards.
 */
#pragma once

#include <time.h>

/** Seconds since an arbitrary point in the past. */
static inline double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
