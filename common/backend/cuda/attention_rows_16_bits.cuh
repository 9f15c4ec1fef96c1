/** @file
 * How rows of a head get to shared memory or to a warp's registers, and how results are written: for
 * attention_16_bits.cu.
 */
#pragma once

#include "backend/cuda/attention.cuh"
#include "backend/cuda/tensor_cores.cuh"

enum { WARPS = 4, WARP_ROWS = 16, BLOCK_ROWS = WARPS * WARP_ROWS, LARGEST_HEAD_16 = 128 };

/* Eight numbers, which a lane reads at once. APART unused numbers follow each row of a tile, so
 * reads of different rows hit different memory banks. */
struct Line {
    alignas(16) uint16_t number[8];
};
enum { APART = 8 };

/* The tiles that are streamed: rows in 16 bits, and the numbers of each row. */
template <int TILE, int SIZE> struct Passing {
    enum { STRIDE = SIZE + APART };
    uint16_t first[TILE * STRIDE], second[TILE * STRIDE];
    float highest[TILE], inverse[TILE], delta[TILE];
    int shown[TILE];
};

/* The lane's two rows, counted from the block's first row, and the first of its two columns in each
 * block of eight. */
__device__ static int row_of_lane(int half)
{
    return threadIdx.x / WARP * WARP_ROWS + half * 8 + threadIdx.x % WARP / 4;
}
__device__ static int column_of_lane(void)
{
    return threadIdx.x % 4 * 2;
}

/* Number d of a row of x; 0 after its end, and in a hidden or missing row. */
__device__ static uint32_t number_at(int64_t size, const Rows &rows, const uint16_t *x,
                                     int64_t position, bool there, int64_t d)
{
    return there && d < size ? x[rows.first + position * rows.width + d] : 0;
}

/* Numbers d and d + 1, in a word. */
__device__ static uint32_t pair_at(int64_t size, const Rows &rows, const uint16_t *x,
                                   int64_t position, bool there, int64_t d)
{
    return number_at(size, rows, x, position, there, d) |
           number_at(size, rows, x, position, there, d + 1) << 16;
}

/* Is a number of the pair neither 0 nor -0? */
__device__ static bool is_nonzero(uint32_t pair)
{
    return pair & 0x7fff7fff;
}

/* Loads rows first.. of one head into a tile. Returns whether this thread loaded a nonzero
 * number. */
template <int TILE, int SIZE>
__device__ static bool load_tile_by_pairs(int64_t size, const Rows &rows, int64_t first,
                                          const uint16_t *x, uint16_t *tile)
{
    bool any = false;
    for (int i = threadIdx.x; i < TILE * SIZE / 2; i += WARPS * WARP) {
        const int row = i / (SIZE / 2), d = i % (SIZE / 2) * 2;
        const bool there = is_there(rows, first + row);
        const uint32_t pair = pair_at(size, rows, x, first + row, there, d);
        reinterpret_cast<uint32_t *>(tile)[(row * (SIZE + APART) + d) / 2] = pair;
        any = any || is_nonzero(pair);
    }
    return any;
}

/* The same. If rows begin at multiples of four, loads four numbers at once, and issues all loads
 * before it stores the first number. */
template <int TILE, int SIZE>
__device__ static bool load_tile(int64_t size, const Rows &rows, int64_t first, const uint16_t *x,
                                 uint16_t *tile)
{
    enum { LANES = SIZE / 4, STEP = WARPS * WARP / LANES };
    if (size % 4 != 0)
        return load_tile_by_pairs<TILE, SIZE>(size, rows, first, x, tile);
    const int top = threadIdx.x / LANES, d = threadIdx.x % LANES * 4;
    const uint16_t *from = x + rows.first + (first + top) * rows.width + d;
    uint2 four[TILE / STEP];
    bool any = false;
#pragma unroll
    for (int i = 0; i < TILE / STEP; i++) {
        four[i] = {0, 0};
        if (d < size && is_there(rows, first + top + i * STEP))
            four[i] = *reinterpret_cast<const uint2 *>(from + i * STEP * rows.width);
    }
#pragma unroll
    for (int i = 0; i < TILE / STEP; i++) {
        *reinterpret_cast<uint2 *>(tile + (top + i * STEP) * (SIZE + APART) + d) = four[i];
        any = any || is_nonzero(four[i].x | four[i].y);
    }
    return any;
}

/* Loads the warp's own rows of x as the left factor of products. */
template <int SIZE>
__device__ static bool load_rows(int64_t size, const Rows &rows, int64_t first, const uint16_t *x,
                                 uint32_t (&pairs)[SIZE / 16][4])
{
    bool any = false;
#pragma unroll
    for (int k = 0; k < SIZE / 16; k++)
#pragma unroll
        for (int word = 0; word < 4; word++) {
            const int64_t position = first + row_of_lane(word % 2);
            const int d = 16 * k + word / 2 * 8 + column_of_lane();
            pairs[k][word] = pair_at(size, rows, x, position, is_there(rows, position), d);
            any = any || is_nonzero(pairs[k][word]);
        }
    return any;
}

/* Writes the warp's rows times factor[half]. */
template <int SIZE>
__device__ static void store_rows(int64_t size, const Rows &rows, int64_t first,
                                  const float (&factor)[2], const Results<SIZE> &results, float *y)
{
#pragma unroll
    for (int n = 0; n < SIZE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t position = first + row_of_lane(i / 2);
            const int d = 8 * n + column_of_lane() + i % 2;
            if (position < rows.count && d < size)
                y[rows.first + position * rows.width + d] = factor[i / 2] * results.block[n][i];
        }
}
