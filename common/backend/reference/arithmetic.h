/** @file
 * The arithmetic of the reference kernels: how each result is rounded and in which order each sum
 * is taken (see rounding.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"

/** Is the rounding mode on? Process-wide, because kernels do not take it as an argument: the judge
 *  sets it for whole runs. */
extern bool reference_rounds;

/** Rounds x to the current precision. For + - * / and sqrt of floats, computing in double and
 * rounding to float gives the single-precision result: 53 bits are more than twice 24. */
static inline real rounded(real x)
{
    return reference_rounds ? (real)(float)x : x;
}

/** Returns y, a value of exp, erf or log, as a single-precision library might compute it: up to one
 * unit in the last place off (GNU C Library manual, "Errors in Math Functions"), depending on y
 * and on the run. */
real reference_inexact(real y);

/** The order in which a reduction adds its `count` terms: a walk through 0..count-1 by a stride
 *  coprime to `count`. */
typedef struct Order {
    /** number of terms, first index, stride (below count) */
    int64_t count, first, stride;
    bool fused; /**< a product is added with one rounding, as by fma() */
} Order;

/** Returns 0, 1, 2, ... in exact mode. Otherwise, each call draws a permutation and `fused`. */
Order reference_order(int64_t count);

/** The index after `i`, as in
 *  for (int64_t n = 0, i = order.first; n < count; n++, i = order_next(order, i)) */
static inline int64_t order_next(Order order, int64_t i)
{
    i += order.stride;
    return i < order.count ? i : i - order.count;
}

/** sum + a b. A product of two floats is exact in double. */
static inline real plus_product(Order order, real sum, real a, real b)
{
    return rounded(sum + (order.fused ? a * b : rounded(a * b)));
}

/** sum over i of a[i·a_stride] · b[i·b_stride]. */
real reference_dot(Order order, const real *a, int64_t a_stride, const real *b, int64_t b_stride);

/** Rows of numbers to multiply: number i of row r is at[r * next + i * step]. */
typedef struct Factor {
    const real *at;           /**< number 0 of row 0 */
    int64_t rows, next, step; /**< number of rows; distance between rows; between numbers */
} Factor;

/** y[r * y_next + c] = sum over i of a[r, i] * b[c, i], each sum in `order`. y must not overlap a
 * or b. If `order` is fused, emulates a processor that multiplies and adds with one rounding. */
void reference_product(Order order, Factor a, Factor b, real *y, int64_t y_next);

/** The number that kernel_round() has rounded to x. */
real reference_decoded(uint16_t x);

/** Number i of x. */
static inline real reference_number(Numbers x, int64_t i)
{
    return x.halves ? reference_decoded(x.halves[i]) : x.reals[i];
}

/** Sets number i of y. */
static inline void reference_put(Numbers y, int64_t i, real value)
{
    if (y.halves)
        kernel_round(1, &value, y.halves + i);
    else
        y.reals[i] = value;
}
