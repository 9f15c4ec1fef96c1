/** @file
 * bfloat16 for the emulated GPU (see cuda_fp16.h).
 */
#pragma once

#include "cuda_fp16.h"

struct __nv_bfloat16 {
    uint16_t bits;
};

/* The upper 16 bits, rounded to nearest, ties to even; NaN stays NaN. */
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    const uint32_t bits = emulated_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return {static_cast<uint16_t>(bits >> 16 | 0x40)};
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
static inline uint16_t __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}

static inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits)
{
    return {bits};
}
static inline float __bfloat162float(__nv_bfloat16 x)
{
    return emulated_number(false, x.bits);
}

struct __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
