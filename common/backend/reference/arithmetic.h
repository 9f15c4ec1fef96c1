/** @file
 * What the reference kernels compute with: the rounding of each result and the order of each sum (see
 * rounding.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

/** Process-wide, as no kernel takes it as an argument: the judge switches it around whole runs. */
extern bool reference_rounds;

/** x, as the precision at hand keeps it. Of two floats, + - * / and sqrt in double rounded to float are what
 * single precision gives: 53 bits are more than twice 24. */
static inline real rounded(real x)
{
    return reference_rounds ? (real)(float)x : x;
}

/** y, of exp, erf or log, as a library for single precision may have it: up to a unit in the last place off (GNU C Library manual, "Errors in
 * Math Functions"), by how much depends on y and on the run. */
real reference_inexact(real y);

/** The order of a reduction's `count` terms: a walk through 0..count-1 by a stride coprime to it. */
typedef struct Order {
    /** how many terms, the first one's index, from one to the next (below count) */
    int64_t count, first, stride;
    bool fused; /**< a product is added to the sum with one rounding, as by fma() */
} Order;

/** 0, 1, 2, ... in exact mode; a fresh permutation with each call otherwise, fused or not. */
Order reference_order(int64_t count);

/** The index after `i`: for (int64_t n = 0, i = order.first; n < count; n++, i = order_next(order, i)) */
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

/** Rows of numbers that are multiplied: number i of row r is at[r * next + i * step]. */
typedef struct Factor {
    const real *at;           /**< number 0 of row 0 */
    int64_t rows, next, step; /**< how many rows; from row to row; from number to number */
} Factor;

/** y[r * y_next + c] = sum over i of a[r, i] * b[c, i], each sum in `order`. y must not overlap a or b. A processor that
 * multiplies and adds with one rounding does so here. */
void reference_product(Order order, Factor a, Factor b, real *y, int64_t y_next);
