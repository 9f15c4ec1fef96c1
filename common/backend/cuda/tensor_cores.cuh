/** @file
 * Products on tensor cores: a warp multiplies a [16,16] by the transpose of b [8,16], both in 16
 * bits, and sums in single precision (PTX ISA, "Matrix fragments for mma.m16n8k16"). With
 * g = lane / 4 and t = lane % 4, a lane holds these elements. A word of a or b has two numbers, the
 * lower column in its lower half:
 *
 *     a [16,16]  word 0: row g, columns 2t and 2t+1; word 1: row g+8; words 2 and 3: the same rows,
 *                columns 8 higher
 *     b [8,16]   word 0: row g, columns 2t and 2t+1; word 1: columns 8 higher
 *     c [16,8]   0, 1: row g, columns 2t and 2t+1; 2, 3: row g+8
 *
 * So two neighbouring blocks of c, rounded, form an a: the next product takes the result of this
 * one from registers.
 */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/cuda/device.cuh"

/** Rounds x to nearest, ties to even: to IEEE 754's binary16, or to the upper half of a single. */
template <bool FP16> __device__ inline uint16_t to_16_bits(float x)
{
    if constexpr (FP16)
        return __half_as_ushort(__float2half_rn(x));
    else
        return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

/** A kernel's argument that may be in 16 bits, and their type. */
typedef struct DeviceNumbers {
    float *reals;
    uint16_t *halves;
    bool fp16;
} DeviceNumbers;

/** For a launch. */
inline DeviceNumbers on_device(Numbers x)
{
    return {x.reals, x.halves, backend_products() == FP16};
}

/** Number i of x. */
__device__ inline float number_at(DeviceNumbers x, int64_t i)
{
    if (x.reals)
        return x.reals[i];
    return x.fp16 ? __half2float(__ushort_as_half(x.halves[i]))
                  : __bfloat162float(__ushort_as_bfloat16(x.halves[i]));
}

/** Sets number i of y. */
__device__ inline void put_number(DeviceNumbers y, int64_t i, float value)
{
    if (y.reals)
        y.reals[i] = value;
    else
        y.halves[i] = y.fp16 ? to_16_bits<true>(value) : to_16_bits<false>(value);
}

/** Two rounded numbers in a word. */
template <bool FP16> __device__ inline uint32_t pair_of(float lower, float upper)
{
    uint32_t pair;
    if constexpr (FP16) {
        const __half2 two = __floats2half2_rn(lower, upper);
        memcpy(&pair, &two, sizeof pair);
    } else {
        const __nv_bfloat162 two = __floats2bfloat162_rn(lower, upper);
        memcpy(&pair, &two, sizeof pair);
    }
    return pair;
}

/** c [16,8] += a [16,16] · b [8,16]^T. */
template <bool FP16>
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
#ifndef __CUDACC__
    emulated_multiply_add(FP16, c, a, b0, b1);
#elif __CUDA_ARCH__ >= 800
    if constexpr (FP16)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif __CUDA_ARCH__ >= 750
    /* Turing: products of half the length, and no bf16 (backend_set_products() has rejected it). */
    if constexpr (FP16) {
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(b0));
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[2]), "r"(a[3]), "r"(b1));
    } else
        __trap();
#else
    __trap(); /* older GPUs have no such product: backend_set_products() has rejected 16 bits */
#endif
}

/** Reads four matrices [8,8] of 16-bit numbers from shared memory: lane 8m + r gives the address of
 *  row r of matrix m, a multiple of 16 bytes. Word m of a lane then belongs to matrix m: row g,
 *  columns 2t and 2t+1; if TRANSPOSED, column g, rows 2t and 2t+1. */
template <bool TRANSPOSED>
__device__ inline void load_matrices(uint32_t (&word)[4], const uint16_t *row)
{
#ifndef __CUDACC__
    emulated_load_matrices(TRANSPOSED, word, row);
#elif __CUDA_ARCH__ >= 750
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(at)
                     : "memory");
#else
    __trap();
#endif
}

/** The layout of a warp's 16 rows of results: block n of c has columns 8n to 8n+7. */
template <int COLUMNS> struct Results {
    float block[COLUMNS / 8][4];
};

/** Eight numbers, which a lane copies at once. APART unused numbers follow each row of a tile in
 *  shared memory, so reads of different rows hit different memory banks. */
struct Line {
    alignas(16) uint16_t number[8];
};
enum { APART = 8 };

/** c [16,ROWS] += a [16,SIZE] · tile [ROWS,SIZE]^T. */
template <bool FP16, int ROWS, int SIZE>
__device__ inline void multiply_by_rows(Results<ROWS> &c, const uint32_t (&a)[SIZE / 16][4],
                                        const Line *tile)
{
    const int matrix = threadIdx.x % WARP / 8, row = matrix / 2 * 8 + threadIdx.x % 8,
              column = matrix % 2 * 8;
#pragma unroll
    for (int k = 0; k < SIZE / 16; k++)
#pragma unroll
        for (int n = 0; n < ROWS / 16; n++) {
            uint32_t b[4];
            load_matrices<false>(b,
                                 tile->number + (16 * n + row) * (SIZE + APART) + 16 * k + column);
            multiply_add<FP16>(c.block[2 * n], a[k], b[0], b[1]);
            multiply_add<FP16>(c.block[2 * n + 1], a[k], b[2], b[3]);
        }
}

/** c [16,SIZE] += weights [16,ROWS], rounded, · tile [ROWS,SIZE]. */
template <bool FP16, int ROWS, int SIZE>
__device__ inline void multiply_by_columns(Results<SIZE> &c, const Results<ROWS> &weights,
                                           const Line *tile)
{
    const int matrix = threadIdx.x % WARP / 8, row = matrix % 2 * 8 + threadIdx.x % 8,
              column = matrix / 2 * 8;
#pragma unroll
    for (int k = 0; k < ROWS / 16; k++) {
        const float(&left)[4] = weights.block[2 * k], (&right)[4] = weights.block[2 * k + 1];
        const uint32_t a[4] = {pair_of<FP16>(left[0], left[1]), pair_of<FP16>(left[2], left[3]),
                               pair_of<FP16>(right[0], right[1]),
                               pair_of<FP16>(right[2], right[3])};
#pragma unroll
        for (int n = 0; n < SIZE / 16; n++) {
            uint32_t b[4];
            load_matrices<true>(b,
                                tile->number + (16 * k + row) * (SIZE + APART) + 16 * n + column);
            multiply_add<FP16>(c.block[2 * n], a, b[0], b[1]);
            multiply_add<FP16>(c.block[2 * n + 1], a, b[2], b[3]);
        }
    }
}
