/** @file
 * Elementary functions without branches or tables, so the compiler can vectorise the loops
 * that use them. The polynomials are weighted minimax fits (Lawson's iteration).
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "backend/cpu/kernel.h"

/** Adding 1.5·2^23 to a number below 2^22 rounds it to an integer n, which is then in the low bits
 *  of the sum. */
static const float ROUNDER = 0x1.8p23f;

/** p 2^n, for n = shifted - ROUNDER in -126..127. */
KERNEL_HELPER float times_power_of_2(float p, float shifted)
{
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3F800000u;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/** exp(x) for x <= 0, with a relative error below 1.2e-7. Results below the smallest normal number
 *  are zero; NaN stays NaN. */
KERNEL_HELPER float exp_nonpositive(float x)
{
    const float shifted = x * 1.44269504f + ROUNDER;
    const float n = shifted - ROUNDER;
    const float r = (x - n * 0x1.63p-1f) + n * 2.12194440e-4f; /* x - n ln 2, ln 2 in two parts */
    float p = 0.00138367421f;
    p = p * r + 0.00837489869f;
    p = p * r + 0.0416682325f;
    p = p * r + 0.166664198f;
    p = p * r + 0.499999911f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return x < -87.3f ? 0.0f : times_power_of_2(p, shifted);
}

/** Maps x to an integer. The integers are ordered like the numbers, with NaN first or last.
 * Compilers do not vectorise comparisons of numbers that may be NaN, but do vectorise those of
 * integers. */
KERNEL_HELPER int32_t order_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits >> 31 & INT32_MAX);
}

/** The inverse of order_of(). */
KERNEL_HELPER float number_of_order(int32_t order)
{
    order ^= order >> 31 & INT32_MAX;
    float x;
    memcpy(&x, &order, sizeof x);
    return x;
}

/** The largest of x; `count` is at least 1. */
KERNEL_HELPER float highest_of(int64_t count, const float *x)
{
    int32_t highest = INT32_MIN;
#pragma omp simd reduction(max : highest)
    for (int64_t i = 0; i < count; i++)
        highest = order_of(x[i]) > highest ? order_of(x[i]) : highest;
    return number_of_order(highest);
}

/** The largest of x where `shown` is not 0, or of all if `all`; NaN if there is none. */
KERNEL_HELPER float highest_shown(bool all, int64_t count, const int32_t *shown, const float *x)
{
    int32_t highest = INT32_MIN;
#pragma omp simd reduction(max : highest)
    for (int64_t i = 0; i < count; i++) {
        const int32_t order = all || shown[i] ? order_of(x[i]) : INT32_MIN;
        highest = order > highest ? order : highest;
    }
    return number_of_order(highest);
}

/** The parts of GELU and its slope, exact or by tanh. */
typedef struct Normal {
    float tail;    /**< Φ(-|x|) */
    float density; /**< φ(x) */
} Normal;

/** Φ(-a) = exp(-a²/2) M(a). M (Mills' ratio / √(2π)) is smooth: a polynomial of degree 12 gives Φ
 * with an error below 2e-8 / max(1, a). The tail stays exact for small values, where 1 + erf(x/√2)
 * would cancel.
 *  @param a |x|, at most FAR */
KERNEL_HELPER Normal normal_at(float a)
{
    const float exponent = a * a * -0.72134752f; /* exp(-a²/2) = 2^exponent */
    const float shifted = exponent + ROUNDER;
    const float r = exponent - (shifted - ROUNDER);
    float e = 0.000153457891f;
    e = e * r + 0.00133999577f;
    e = e * r + 0.00961848907f;
    e = e * r + 0.0555032864f;
    e = e * r + 0.240226462f;
    e = e * r + 0.693147182f;
    e = e * r + 1.0f;
    e = times_power_of_2(e, shifted);
    float p = 4.53400766e-08f;
    p = p * a - 1.30354044e-06f;
    p = p * a + 1.69561208e-05f;
    p = p * a - 0.000133566689f;
    p = p * a + 0.00072385004f;
    p = p * a - 0.00293083442f;
    p = p * a + 0.00947809871f;
    p = p * a - 0.0258981474f;
    p = p * a + 0.0621624812f;
    p = p * a - 0.132883206f;
    p = p * a + 0.249985367f;
    p = p * a - 0.398941427f;
    p = p * a + 0.5f;
    return (Normal){e * p, e * 0.398942280f};
}

/** σ(-a) = 1 / (1 + exp(a)), the logistic function's tail, and its density σ(a) σ(-a).
 *  @param a at least 0 */
KERNEL_HELPER Normal logistic_at(float a)
{
    const float e = exp_nonpositive(-a), inverse = 1.0f / (1.0f + e);
    return (Normal){e * inverse, e * inverse * inverse};
}

/** The approximation of GELU by tanh replaces Φ(-a) by σ(-2u), 2u = √(8/π) (a + 0.044715 a³).
 *  @param a |x|, at most FAR */
KERNEL_HELPER Normal normal_by_tanh_at(float a)
{
    const float square = a * a;
    const Normal logistic = logistic_at(1.59576912f * (a + 0.044715f * square * a));
    return (Normal){logistic.tail, logistic.density * 1.59576912f * (1.0f + 0.134145f * square)};
}

/** x σ(x) and its slope σ(x) (1 + x σ(-x)), the parts of SwiGLU. */
typedef struct Silu {
    float value; /**< x σ(x) */
    float slope; /**< its derivative */
} Silu;

/** Returns both at x. */
KERNEL_HELPER Silu silu_at(float x)
{
    const float tail = logistic_at(fabsf(x)).tail;
    const float open = x < 0 ? tail : 1.0f - tail, shut = x < 0 ? 1.0f - tail : tail;
    return (Silu){x * open, open * (1.0f + x * shut)};
}

/** A larger |x| counts as FAR, because Φ(-13) is only 6e-39. This also avoids ∞ · 0. */
static const float FAR = 13.0f;

/** x Φ(x), with the error function or by tanh. With a = |x|: max(x, 0) - a Φ(-a), since
 *  Φ(a) = 1 - Φ(-a). */
KERNEL_HELPER float gelu(float x, bool by_tanh)
{
    const float a = FAR < fabsf(x) ? FAR : fabsf(x);
    return (0.0f > x ? 0.0f : x) - a * (by_tanh ? normal_by_tanh_at(a) : normal_at(a)).tail;
}

/** gelu'(x) = Φ(x) + x φ(x). With a = |x| and t = Φ(-a) - a φ(a), it is t for negative x, otherwise
 *  1 - t. */
KERNEL_HELPER float gelu_slope(float x, bool by_tanh)
{
    const float a = FAR < fabsf(x) ? FAR : fabsf(x);
    const Normal normal = by_tanh ? normal_by_tanh_at(a) : normal_at(a);
    const float t = normal.tail - a * normal.density;
    return x < 0 ? t : 1.0f - t;
}
