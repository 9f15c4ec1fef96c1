/** @file
 * How the kernels of this backend are built: one source, compiled for several instruction sets, cut into
 * parts for the threads.
 */
#pragma once

#include <omp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

#ifdef BALISE_DOUBLE
#error "the cpu backend is single precision; link the reference backend to double precision"
#endif

/** KERNEL stands before a function with a hot loop: the machine's instruction set is looked up when the
 * program loads. By level or feature, since gcc takes arch=haswell and arch=skylake-avx512 for the makes of
 * one vendor only, and clang 14 does not know the levels. Sanitizers cannot run that early. The function must
 * not hold a parallel region: its body would be taken out before the clones are made. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__) ||       \
    !defined(__ELF__)
#define KERNEL
#elif defined(__clang__)
#if __has_attribute(target_clones) && !__has_feature(address_sanitizer) &&                         \
    !__has_feature(thread_sanitizer) && !__has_feature(memory_sanitizer)
#define KERNEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KERNEL
#endif
#elif __GNUC__ >= 12
#define KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNEL
#endif

/** A helper of a KERNEL: the compiler must not keep one copy of it for all instruction sets. */
#define KERNEL_HELPER static inline __attribute__((always_inline))

/** The numbers that make it worth waking another thread: about 10 µs of memory traffic. */
enum { WORK_OF_A_THREAD = 16384 };

/** How many threads share `work` numbers. */
static inline int threads_for(int64_t work)
{
    const int most = omp_get_max_threads();
    if (most == 1 || work < 2 * WORK_OF_A_THREAD)
        return 1;
    return work / WORK_OF_A_THREAD < most ? (int)(work / WORK_OF_A_THREAD) : most;
}

/** The first of `count` items that thread `part` of `parts` takes, a multiple of `unit`; those of part + 1
 * follow. Units of a cache line keep two threads from writing to the same one. */
static inline int64_t part_begin(int64_t count, int64_t unit, int part, int parts)
{
    return part == parts ? count : count / unit * part / parts * unit;
}

/** The loop behind it runs on as many threads. */
#define IN_PARALLEL(parts) _Pragma("omp parallel for num_threads(parts) if (parts > 1)")

/** FOR_PARTS(work, count, unit) statement: does it for the items [begin, end) of each part of `count`. A thread takes a part; as many as
 * are worth it share `work` numbers. */
#define FOR_PARTS(work, count, unit)                                                               \
    const int parts = threads_for(work);                                                           \
    IN_PARALLEL(parts)                                                                             \
    for (int t = 0; t < parts; t++)                                                                \
        for (int64_t begin = part_begin(count, unit, t, parts),                                    \
                     end = part_begin(count, unit, t + 1, parts);                                  \
             begin >= 0; begin = -1)

/** Does a row hold nothing but zeros? Ends at the first number that is none: of most rows it reads one. */
KERNEL_HELPER bool is_zero(int64_t columns, const real *row)
{
    for (int64_t c = 0; c < columns; c++)
        if (row[c] != 0)
            return false;
    return true;
}

enum { CACHE_LINE = 16 }; /**< in numbers */
