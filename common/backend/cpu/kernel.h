/** @file
 * How this backend's kernels are built: one source, compiled for several instruction sets, split
 * into parts for threads.
 */
#pragma once

#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/real.h"

#ifdef BALISE_DOUBLE
#error "the cpu backend is single precision; link the reference backend to double precision"
#endif

/** KERNEL marks a function with a hot loop: the loader selects the variant for the machine's
 * instruction set. Variants are named by level or feature, because gcc accepts arch=haswell and
 * arch=skylake-avx512 for one vendor's processors only, and clang 14 does not know the levels. With
 * a sanitizer, there is only one variant, because the loader would select one before the sanitizer
 * is initialised. The function must not contain a parallel region: the compiler would outline its
 * body before it makes the variants. */
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

/** A helper of a KERNEL: must be inlined, or all instruction sets would share one copy. */
#define KERNEL_HELPER static inline __attribute__((always_inline))

/** The least amount of work, in numbers, worth another thread: about 10 µs of memory traffic. */
enum { WORK_OF_A_THREAD = 16384 };

/** How many threads share `work` numbers. */
static inline int threads_for(int64_t work)
{
    const int most = omp_get_max_threads();
    if (most == 1 || work < 2 * WORK_OF_A_THREAD)
        return 1;
    return work / WORK_OF_A_THREAD < most ? (int)(work / WORK_OF_A_THREAD) : most;
}

/** The first item of part `part` if `parts` threads share `count` items: a multiple of `unit`. The
 * part ends where part + 1 begins. With units of a cache line, no two threads write to the same
 * line. */
static inline int64_t part_begin(int64_t count, int64_t unit, int part, int parts)
{
    return part == parts ? count : count / unit * part / parts * unit;
}

/** Runs the loop that follows on `parts` threads. */
#define IN_PARALLEL(parts) _Pragma("omp parallel for num_threads(parts) if (parts > 1)")

/** FOR_PARTS(work, count, unit) statement: runs the statement for the items [begin, end) of each
 * part of `count`. Each thread takes a part. `work`, in numbers, determines how many threads
 * there are. */
#define FOR_PARTS(work, count, unit)                                                               \
    const int parts = threads_for(work);                                                           \
    IN_PARALLEL(parts)                                                                             \
    for (int t = 0; t < parts; t++)                                                                \
        for (int64_t begin = part_begin(count, unit, t, parts),                                    \
                     end = part_begin(count, unit, t + 1, parts);                                  \
             begin >= 0; begin = -1)

enum { CACHE_LINE = 16 }; /**< in numbers */

/* ---- numbers in 16 bits: the upper halves of floats --------------------------------------------- */

/** The number whose upper half this is. */
KERNEL_HELPER real widened(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** The upper half of x, rounded to nearest, ties to even. NaN stays NaN; a number that is too large
 *  becomes infinite. */
KERNEL_HELPER uint16_t narrowed(real x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const bool is_nan = x != x;
    const uint32_t half = 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(((bits + (is_nan ? 0 : half)) | (is_nan ? 0x400000 : 0)) >> 16);
}

/** Number i of x. In a KERNEL, make `in_16_bits` a constant: the compiler makes a loop for each. */
KERNEL_HELPER real number_at(bool in_16_bits, Numbers x, int64_t i)
{
    return in_16_bits ? widened(x.halves[i]) : x.reals[i];
}

/** Sets number i of y. */
KERNEL_HELPER void put_number(bool in_16_bits, Numbers y, int64_t i, real value)
{
    if (in_16_bits)
        y.halves[i] = narrowed(value);
    else
        y.reals[i] = value;
}

/** The numbers from `offset` on. */
static inline Numbers numbers_from(Numbers x, int64_t offset)
{
    return (Numbers){x.reals ? x.reals + offset : NULL, x.halves ? x.halves + offset : NULL};
}

/** Sets numbers begin..begin+count-1 to 0. */
static inline void clear_numbers(Numbers x, int64_t begin, int64_t count)
{
    if (x.halves)
        memset(x.halves + begin, 0, (size_t)count * sizeof *x.halves);
    else if (x.reals)
        memset(x.reals + begin, 0, (size_t)count * sizeof *x.reals);
}

/** is_zero() of one type. */
KERNEL_HELPER bool has_only_zeros(bool in_16_bits, int64_t columns, Numbers x, int64_t begin)
{
    int64_t c = 0;
    for (; c + CACHE_LINE <= columns; c += CACHE_LINE) {
        int others = 0;
#pragma omp simd reduction(| : others)
        for (int64_t i = 0; i < CACHE_LINE; i++)
            others |= number_at(in_16_bits, x, begin + c + i) != 0;
        if (others)
            return false;
    }
    for (; c < columns; c++)
        if (number_at(in_16_bits, x, begin + c) != 0)
            return false;
    return true;
}

/** Are numbers `begin`..`begin + columns - 1` all 0 or -0? Looks at a cache line at a time, because
 *  the compiler does not vectorise a loop that may stop at each number. Stops at the first line with
 *  a nonzero number, so it reads only one line of most rows. */
KERNEL_HELPER bool is_zero(int64_t columns, Numbers x, int64_t begin)
{
    return x.halves ? has_only_zeros(true, columns, x, begin)
                    : !x.reals || has_only_zeros(false, columns, x, begin);
}
