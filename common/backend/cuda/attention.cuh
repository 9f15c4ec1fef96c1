/** @file
 * Shared by the attention kernels in single precision and those on tensor cores: the location of a
 * head, the data kept per query.
 */
#pragma once

#include "backend/cuda/device.cuh"

/* AttentionShape, in the kernels' types. */
typedef struct Shape {
    int64_t positions, heads, size;
    float factor;
} Shape;

static inline Shape shape_of(const AttentionShape *shape)
{
    return {shape->positions, shape->heads, shape->head_size, (float)shape->factor};
}

/* Launches a block for each `rows` positions of each head of each sample. */
static inline dim3 grid_of(const AttentionShape *shape, int rows)
{
    return dim3((unsigned)((shape->positions + rows - 1) / rows),
                (unsigned)(shape->batch * shape->heads));
}

/* The arguments of an attention kernel; unused pointers are null. */
typedef struct Arguments {
    const AttentionShape *shape;
    const real *q, *k, *v;
    const int32_t *mask;
    const real *dy;
    real *y, *highest, *sums, *dq, *dk, *dv, *work;
} Arguments;

/** Attention with products on tensor cores. Returns false and does nothing if they do not support
 *  this precision or head size. */
bool attention_16_bits(const Arguments &arguments, bool backward, Precision precision);

/* The location of head blockIdx.y: `first` in q, k, v and y, whose rows are `width` numbers apart;
 * `row` in the data kept per row. */
typedef struct Head {
    int64_t width, first, row;
    const int32_t *shown; /* [positions], for keys */
} Head;

__device__ static Head head_of(const Shape &shape, const int32_t *mask)
{
    const int64_t n = blockIdx.y, sample = n / shape.heads, width = shape.heads * shape.size;
    return {width, sample * shape.positions * width + n % shape.heads * shape.size,
            n * shape.positions, mask + sample * shape.positions};
}

/* What the forward pass kept for a query; without a query, nothing flows. */
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
