/** @file
 * How rows of a head get to shared memory or to a warp's registers, which scores are hidden, and how
 * results are written: for attention_16_bits.cu.
 */
#pragma once

#include "backend/cuda/attention.cuh"
#include "backend/cuda/tensor_cores.cuh"

enum { WARPS = 4, WARP_ROWS = 16, BLOCK_ROWS = WARPS * WARP_ROWS };

enum { STAGES = 2 };

/* The tiles that are streamed: rows in 16 bits, and two numbers for each query. While the warps
 * multiply one stage, the copies of the next are under way. */
template <int TILE, int SIZE> struct Stage {
    Line first[TILE * (SIZE + APART) / 8], second[TILE * (SIZE + APART) / 8];
    float normal[TILE], delta[TILE];
};
template <int TILE, int SIZE> struct Passing {
    Stage<TILE, SIZE> stage[STAGES];
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

/* Numbers d and d + 1 of a row of x, in a word; 0 after its end, and in a hidden or missing row. */
__device__ static uint32_t pair_at(int64_t size, const Rows &rows, const uint16_t *x,
                                   int64_t position, bool there, int64_t d)
{
    if (!there || d >= size)
        return 0;
    const uint16_t *from = x + rows.first + position * rows.width + d;
    if (size % 2 == 0)
        return *reinterpret_cast<const uint32_t *>(from);
    return from[0] | (d + 1 < size ? (uint32_t)from[1] << 16 : 0);
}

/* Is a number of the pair neither 0 nor -0? */
__device__ static bool is_nonzero(uint32_t pair)
{
    return pair & 0x7fff7fff;
}

/* Begins to copy a line to shared memory, or zeros if it is not there. */
__device__ static void copy_line(Line *to, const uint16_t *from, bool there)
{
#if defined __CUDACC__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
#else
    *to = there ? *reinterpret_cast<const Line *>(from) : Line{};
#endif
}

/* Ends the group of copies for one stage. */
__device__ static void copies_end(void)
{
#if defined __CUDACC__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for this thread's copies, except those of the latest stage. */
__device__ static void copies_wait(void)
{
#if defined __CUDACC__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
#endif
}

/* Begins to copy rows first.. of one head into a tile: those with a bit in `there`; the others
 * become 0. Where rows do not begin at multiples of eight numbers, copies pairs synchronously. */
template <int TILE, int SIZE>
__device__ static void copy_tile(int64_t size, const Rows &rows, int64_t first, uint64_t there,
                                 const uint16_t *x, Line *tile)
{
    enum { LINES = SIZE / 8 };
    for (int i = threadIdx.x; i < TILE * LINES; i += WARPS * WARP) {
        const int row = i / LINES, d = i % LINES * 8;
        const bool is = there >> row & 1 && d < size;
        Line *to = tile + row * (LINES + APART / 8) + d / 8;
        if (size % 8 == 0)
            copy_line(to, is ? x + rows.first + (first + row) * rows.width + d : x, is);
        else
            for (int pair = 0; pair < 8; pair += 2)
                *reinterpret_cast<uint32_t *>(to->number + pair) =
                    pair_at(size, rows, x, first + row, is, d + pair);
    }
}

/* Does this thread's share of a tile have a number other than 0? */
template <int TILE, int SIZE> __device__ static bool has_nonzero(const Line *tile)
{
    enum { LINES = SIZE / 8 };
    uint32_t any = 0;
    for (int i = threadIdx.x; i < TILE * LINES; i += WARPS * WARP) {
        const uint4 four =
            *reinterpret_cast<const uint4 *>(tile + i / LINES * (LINES + APART / 8) + i % LINES);
        any |= four.x | four.y | four.z | four.w;
    }
    return is_nonzero(any);
}

/* Bits for the first `count` rows of a tile. */
__device__ static uint64_t bits_below(int64_t count)
{
    return count >= 64 ? ~(uint64_t)0 : count <= 0 ? 0 : ((uint64_t)1 << count) - 1;
}

/* The tiles of keys before `end` that have a visible key, in order. The masks of a tile are read
 * one call ahead, so the warp does not wait for them. */
template <int TILE> struct KeyTiles {
    const Rows &keys;
    int64_t end, tile;
    bool seen[TILE / WARP];

    __device__ KeyTiles(const Rows &keys, int64_t end) : keys(keys), end(end), tile(0)
    {
        look();
    }
    __device__ void look()
    {
#pragma unroll
        for (int i = 0; i < TILE / (int)WARP; i++)
            seen[i] = is_there(keys, tile + i * WARP + threadIdx.x % WARP);
    }
    /* Sets the first key of the next tile. Returns a bit for each of its visible keys: none after
     * the last tile. */
    __device__ uint64_t next(int64_t *key)
    {
        uint64_t bits = 0;
        while (!bits && tile < end) {
#pragma unroll
            for (int i = 0; i < TILE / (int)WARP; i++)
                bits |= (uint64_t)__ballot_sync(ALL_LANES, seen[i]) << i * WARP;
            *key = tile;
            tile += TILE;
            look();
        }
        return bits;
    }
};

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

static const float LOG2_E = 1.4426950408889634f;

/* 2^x. Exponentials are powers of two here: the logarithm of e is part of the factor of scores. */
__device__ static float power_of_2(float x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}

/* The last key that the query sees, counted from the tile's first key, `key`; negative if it sees
 * no key of the tile. */
__device__ static int64_t last_seen(const Shape &shape, int64_t query, int64_t key)
{
    return query + shape.ahead - key;
}

/* The first query that sees the key, counted from the tile's first query, `query`. */
__device__ static int64_t first_seeing(const Shape &shape, int64_t key, int64_t query)
{
    return key - shape.ahead - query;
}

/* The first row of the warp, counted from the block's first row. */
__device__ static int first_row_of_warp(void)
{
    return threadIdx.x / WARP * WARP_ROWS;
}

/* Hides the scores without a bit in the set of the lane's row. */
template <int TILE>
__device__ static void hide(Results<TILE> &scores, uint64_t shown0, uint64_t shown1)
{
    const uint64_t shown[2] = {shown0 >> column_of_lane(), shown1 >> column_of_lane()};
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (!(shown[i / 2] >> (8 * n + i % 2) & 1))
                scores.block[n][i] = -INFINITY;
}

/* Hides the scores of keys without a bit in `seen`, and of those after the last one that a query
 * sees; queries are the rows. */
template <int TILE>
__device__ static void hide_keys(const Shape &shape, Results<TILE> &scores, int64_t first,
                                 int64_t key, uint64_t seen)
{
    if (seen == bits_below(TILE) && last_seen(shape, first + first_row_of_warp(), key) >= TILE - 1)
        return;
    hide(scores, seen & bits_below(last_seen(shape, first + row_of_lane(0), key) + 1),
         seen & bits_below(last_seen(shape, first + row_of_lane(1), key) + 1));
}

/* Hides the scores of queries before the first one that sees the key; keys are the rows. */
template <int TILE>
__device__ static void hide_queries(const Shape &shape, Results<TILE> &scores, int64_t first,
                                    int64_t query)
{
    if (first_seeing(shape, first + first_row_of_warp() + WARP_ROWS - 1, query) <= 0)
        return;
    hide(scores, ~bits_below(first_seeing(shape, first + row_of_lane(0), query)),
         ~bits_below(first_seeing(shape, first + row_of_lane(1), query)));
}

/* Begins to copy a tile of keys and values, or of queries and gradients, if it has rows. */
template <int TILE, int SIZE>
__device__ static void copy_stage(const Shape &shape, const Rows &rows, int64_t first,
                                  uint64_t there, const uint16_t *x, const uint16_t *z,
                                  Stage<TILE, SIZE> &stage)
{
    if (there) {
        copy_tile<TILE, SIZE>(shape.size, rows, first, there, x, stage.first);
        copy_tile<TILE, SIZE>(shape.size, rows, first, there, z, stage.second);
    }
    copies_end();
}

/* Writes the warp's rows times factor[half], rounded. */
template <bool FP16, int SIZE>
__device__ static void store_rows(int64_t size, const Rows &rows, int64_t first,
                                  const float (&factor)[2], const Results<SIZE> &results,
                                  uint16_t *y)
{
#pragma unroll
    for (int n = 0; n < SIZE / 8; n++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int64_t position = first + row_of_lane(half);
            const int d = 8 * n + column_of_lane();
            if (position >= rows.count || d >= size)
                continue;
            uint16_t *to = y + rows.first + position * rows.width + d;
            const uint32_t two = pair_of<FP16>(factor[half] * results.block[n][2 * half],
                                               factor[half] * results.block[n][2 * half + 1]);
            if (size % 2 == 0)
                *reinterpret_cast<uint32_t *>(to) = two;
            else {
                to[0] = (uint16_t)two;
                if (d + 1 < size)
                    to[1] = (uint16_t)(two >> 16);
            }
        }
}
