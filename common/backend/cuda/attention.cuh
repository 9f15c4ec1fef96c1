/** @file
 * Shared by the attention kernels in single precision and those on tensor cores: the location of a
 * head, the data kept per query.
 */
#pragma once

#include <cmath>

#include "backend/cuda/device.cuh"

/* AttentionShape, in the kernels' types. Query i sees key j if j - i <= ahead, so it sees all keys
 * unless attention is causal. */
typedef struct Shape {
    int64_t positions, keys, ahead, heads, size;
    float factor;
} Shape;

static inline Shape shape_of(const AttentionShape *shape)
{
    const int64_t keys = attention_keys(shape);
    return {shape->positions,
            keys,
            shape->causal ? shape->past : keys,
            shape->heads,
            shape->head_size,
            (float)shape->factor};
}

/* The grid of a launch: one block per `rows` positions, for each head of each sample. */
static inline dim3 grid_of(const AttentionShape *shape, int rows)
{
    return dim3((unsigned)((shape->positions + rows - 1) / rows),
                (unsigned)(shape->batch * shape->heads));
}

/* The arguments of an attention kernel, whose matrices have one type; unused ones are empty. */
typedef struct Arguments {
    const AttentionShape *shape;
    Numbers q, k, v, y, dy, dq, dk, dv;
    const int32_t *mask;
    real *highest, *sums, *work;
} Arguments;

/** Attention on tensor cores, of matrices in 16 bits. `a.mask` is on the device. */
void attention_in_16_bits(const Arguments &a, bool backward);

/* The rows of a head in q and y, or in k and v: `count` rows, `width` numbers apart. */
typedef struct Rows {
    int64_t count, first, width;
    const int32_t *shown; /* [count]; NULL: all are shown */
} Rows;

__device__ static bool is_there(const Rows &rows, int64_t position)
{
    return position < rows.count && (!rows.shown || rows.shown[position]);
}

/* The location of head blockIdx.y. */
typedef struct Head {
    Rows queries, keys;
    int64_t row; /* index of the first query in the data kept per query */
} Head;

__device__ static Head head_of(const Shape &shape, const int32_t *mask)
{
    const int64_t n = blockIdx.y, sample = n / shape.heads, width = shape.heads * shape.size,
                  at = n % shape.heads * shape.size;
    return {{shape.positions, sample * shape.positions * width + at, width, NULL},
            {shape.keys, sample * shape.keys * width + at, width,
             mask ? mask + sample * shape.keys : NULL},
            n * shape.positions};
}

/* What is kept for a query: two numbers by the forward pass, and delta by query_gradient. Past the
 * last query, these numbers make every gradient 0. */
typedef struct Query {
    float highest, inverse, delta;
} Query;

__device__ static Query query_at(const Shape &shape, const Head &head, int64_t position,
                                 const float *highest, const float *sums, const float *delta)
{
    if (position >= shape.positions)
        return {INFINITY, 0, 0};
    const int64_t at = head.row + position;
    return {highest[at], 1 / sums[at], delta ? delta[at] : 0};
}

/* Returns the end of the keys that the queries before `end` see. */
__device__ static int64_t keys_end(const Shape &shape, int64_t end)
{
    return end + shape.ahead < shape.keys ? end + shape.ahead : shape.keys;
}

/* Returns the beginning of a tile: no query before it sees a key from `first` on. */
__device__ static int64_t queries_begin(const Shape &shape, int64_t first, int tile)
{
    return first > shape.ahead ? (first - shape.ahead) / tile * tile : 0;
}
