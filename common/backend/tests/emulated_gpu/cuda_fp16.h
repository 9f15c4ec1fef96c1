/** @file
 * 16-bit numbers for the emulated GPU, IEEE 754's binary16 here and bfloat16 in cuda_bf16.h:
 * rounding by arithmetic on bits.
 */
#pragma once

#include "cuda_runtime.h"

struct __half {
    uint16_t bits;
};

static inline uint32_t emulated_bits(float x)
{
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* 11 significant bits; infinity from 65520 on. Below 2^-14, numbers are multiples of 2^-24: adding
 * 1/2 rounds to them. */
static inline __half __float2half_rn(float x)
{
    const uint32_t sign = emulated_bits(x) >> 16 & 0x8000, size = emulated_bits(x) & 0x7fffffff;
    uint32_t half;
    if (size > 0x7f800000)
        half = 0x7e00;
    else if (size >= emulated_bits(65520))
        half = 0x7c00;
    else if (size < emulated_bits(0x1p-14f))
        half = emulated_bits(std::fabs(x) + 0.5f) - emulated_bits(0.5f);
    else
        half = (size + 0x0fff + (size >> 13 & 1) - ((127 - 15) << 23)) >> 13;
    return {static_cast<uint16_t>(sign | half)};
}
static inline uint16_t __half_as_ushort(__half x)
{
    return x.bits;
}

/** The number that these bits represent. */
float emulated_number(bool fp16, uint16_t bits);
static inline __half __ushort_as_half(uint16_t bits)
{
    return {bits};
}
static inline float __half2float(__half x)
{
    return emulated_number(true, x.bits);
}

struct __half2 {
    __half x, y;
};
static inline __half2 __floats2half2_rn(float x, float y)
{
    return {__float2half_rn(x), __float2half_rn(y)};
}
