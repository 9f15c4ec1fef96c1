/** @file
 * What the kernels of attention are made of: tiles of TILE queries against tiles of TILE keys, in shared memory, so that no matrix of scores
 * is ever written (Dao et al., arXiv:2205.14135). Eight neighbouring threads share a row of a tile; each holds every eighth number of that
 * row's result.
 */
#pragma once

#include "backend/cuda/attention.cuh"
#include "base/run.h"

enum { PARTS = 8 };

/* Rows first.. of one head into a tile whose rows lie size + 1 apart; zeros for positions that are hidden or not there.
 * Returns whether this thread met a number other than zero. */
template <int TILE>
__device__ static bool load(const Shape &shape, const Head &head, const int32_t *shown,
                            int64_t first, const float *x, float *tile)
{
    bool any = false;
    for (int64_t i = threadIdx.x; i < TILE * shape.size; i += TILE * PARTS) {
        const int64_t r = i / shape.size, d = i % shape.size, position = first + r;
        const bool there = position < shape.positions && (!shown || shown[position]);
        const float value = there ? x[head.first + position * head.width + d] : 0;
        tile[r * (shape.size + 1) + d] = value;
        any = any || value != 0;
    }
    return any;
}

__device__ static float dot(int64_t size, const float *x, const float *y)
{
    float sum = 0;
    for (int64_t d = 0; d < size; d++)
        sum += x[d] * y[d];
    return sum;
}

/* Adds factor · weights [TILE] · tile to this thread's share of a row, d = part, part + PARTS, ... */
template <int TILE, int SIZE>
__device__ static void add_rows(int64_t size, float factor, const float *weights, const float *tile,
                                float *share)
{
    const int part = threadIdx.x % PARTS;
#pragma unroll 2
    for (int j = 0; j < TILE; j++) {
        const float weight = factor * weights[j];
        const float *row = tile + j * (size + 1) + part;
#pragma unroll
        for (int i = 0; i < SIZE / PARTS; i++)
            if (part + i * PARTS < size)
                share[i] += weight * row[i * PARTS];
    }
}

/* Writes factor · this thread's share of row `position`. */
template <int SIZE>
__device__ static void store(const Shape &shape, const Head &head, int64_t position, float factor,
                             const float *share, float *y)
{
    const int part = threadIdx.x % PARTS;
    if (position >= shape.positions)
        return;
#pragma unroll
    for (int i = 0; i < SIZE / PARTS; i++)
        if (part + i * PARTS < shape.size)
            y[head.first + position * head.width + part + i * PARTS] = factor * share[i];
}

static int64_t numbers_of_tiles(int tile, int64_t size, int tiles, int squares)
{
    return tiles * tile * (size + 1) + squares * tile * (tile + 1);
}

/* More than 48 KiB of shared memory has to be asked for; not every GPU has as much. */
template <typename... P, typename... A>
static void launch_tiles(const char *name, void (*kernel)(P...), const AttentionShape *shape,
                         int tile, int tiles, int squares, A... arguments)
{
    const int64_t bytes =
        numbers_of_tiles(tile, shape->head_size, tiles, squares) * (int64_t)sizeof(float);
    device_stream();
    if (bytes > 48 << 10 &&
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes) !=
            cudaSuccess) {
        cudaGetLastError(); /* it is told here */
        misuse("more HEADS make smaller ones",
               "attention: this GPU has too little shared memory for heads of %lld numbers",
               (long long)shape->head_size);
    }
    launch(name, kernel, grid_of(shape, tile), (unsigned)(tile * PARTS), bytes, shape_of(shape),
           arguments...);
}
