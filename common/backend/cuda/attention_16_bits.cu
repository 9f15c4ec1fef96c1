/* Attention on tensor cores, with products in 16 bits: tiles of 64 queries against tiles of keys
 * (or the reverse), like those of attention.cu. A warp has 16 rows of scores; their exponentials go
 * from its registers directly into the next product (Dao, arXiv:2307.08691, section 3.3). Scores,
 * soft-max and sums are in single precision. Rounded are q, k, v and dy, the exponentials (forward)
 * or probabilities (backward), and the gradient of the scores. */
#include <cmath>

#include "backend/cuda/attention.cuh"
#include "backend/cuda/tensor_cores.cuh"

enum { WARPS = 4, WARP_ROWS = 16, BLOCK_ROWS = WARPS * WARP_ROWS, LARGEST_HEAD_16 = 128 };

/* Eight numbers, which a lane reads at once. Rows of a tile are APART further apart, so that reads
 * hit different memory banks. */
struct Line {
    alignas(16) uint16_t number[8];
};
enum { APART = 8 };

/* The tiles that are streamed: rows in 16 bits, and one word per row. */
template <int TILE, int SIZE> struct Passing {
    enum { STRIDE = SIZE + APART };
    uint16_t first[TILE * STRIDE], second[TILE * STRIDE];
    float highest[TILE], inverse[TILE], delta[TILE];
    int shown[TILE];
};

/* The lane's two rows among the warp's 16, and the first of its two columns in each block of
 * eight. */
__device__ static int row_of_lane(int half)
{
    return threadIdx.x / WARP * WARP_ROWS + half * 8 + threadIdx.x % WARP / 4;
}
__device__ static int column_of_lane(void)
{
    return threadIdx.x % 4 * 2;
}

/* Number d of a row of x; 0 after its end, and in a hidden or missing row. */
__device__ static float number_at(const Shape &shape, const Head &head, const float *x,
                                  int64_t position, bool there, int64_t d)
{
    return there && d < shape.size ? x[head.first + position * head.width + d] : 0;
}

__device__ static bool is_there(const Shape &shape, const int32_t *shown, int64_t position)
{
    return position < shape.positions && (!shown || shown[position]);
}

/* Loads rows first.. of one head into a tile. Returns whether this thread loaded a nonzero
 * number. */
template <bool FP16, int TILE, int SIZE>
__device__ static bool load_tile_by_pairs(const Shape &shape, const Head &head,
                                          const int32_t *shown, int64_t first, const float *x,
                                          uint16_t *tile)
{
    bool any = false;
    for (int i = threadIdx.x; i < TILE * SIZE / 2; i += WARPS * WARP) {
        const int row = i / (SIZE / 2), d = i % (SIZE / 2) * 2;
        const bool there = is_there(shape, shown, first + row);
        const float lower = number_at(shape, head, x, first + row, there, d);
        const float upper = number_at(shape, head, x, first + row, there, d + 1);
        reinterpret_cast<uint32_t *>(tile)[(row * (SIZE + APART) + d) / 2] =
            pair_of<FP16>(lower, upper);
        any = any || lower != 0 || upper != 0;
    }
    return any;
}

/* The same. If rows begin at multiples of four, loads four numbers at once, and issues all loads
 * before it rounds the first number. */
template <bool FP16, int TILE, int SIZE>
__device__ static bool load_tile(const Shape &shape, const Head &head, const int32_t *shown,
                                 int64_t first, const float *x, uint16_t *tile)
{
    enum { LANES = SIZE / 4, STEP = WARPS * WARP / LANES };
    if (shape.size % 4 != 0)
        return load_tile_by_pairs<FP16, TILE, SIZE>(shape, head, shown, first, x, tile);
    const int top = threadIdx.x / LANES, d = threadIdx.x % LANES * 4;
    const float *from = x + head.first + (first + top) * head.width + d;
    float4 four[TILE / STEP];
    bool any = false;
#pragma unroll
    for (int i = 0; i < TILE / STEP; i++) {
        four[i] = {0, 0, 0, 0};
        if (d < shape.size && is_there(shape, shown, first + top + i * STEP))
            four[i] = *reinterpret_cast<const float4 *>(from + i * STEP * head.width);
    }
#pragma unroll
    for (int i = 0; i < TILE / STEP; i++) {
        uint32_t *to = reinterpret_cast<uint32_t *>(tile + (top + i * STEP) * (SIZE + APART) + d);
        to[0] = pair_of<FP16>(four[i].x, four[i].y);
        to[1] = pair_of<FP16>(four[i].z, four[i].w);
        any = any || four[i].x != 0 || four[i].y != 0 || four[i].z != 0 || four[i].w != 0;
    }
    return any;
}

/* Loads the warp's own rows of x as the left factor of products. */
template <bool FP16, int SIZE>
__device__ static bool load_rows(const Shape &shape, const Head &head, const int32_t *shown,
                                 int64_t first, const float *x, uint32_t (&rows)[SIZE / 16][4])
{
    bool any = false;
#pragma unroll
    for (int k = 0; k < SIZE / 16; k++)
#pragma unroll
        for (int word = 0; word < 4; word++) {
            const int64_t position = first + row_of_lane(word % 2);
            const int d = 16 * k + word / 2 * 8 + column_of_lane();
            const bool there = is_there(shape, shown, position);
            const float lower = number_at(shape, head, x, position, there, d);
            const float upper = number_at(shape, head, x, position, there, d + 1);
            rows[k][word] = pair_of<FP16>(lower, upper);
            any = any || lower != 0 || upper != 0;
        }
    return any;
}

/* Writes the warp's rows times factor[half]. */
template <int SIZE>
__device__ static void store_rows(const Shape &shape, const Head &head, int64_t first,
                                  const float (&factor)[2], const Results<SIZE> &results, float *y)
{
#pragma unroll
    for (int n = 0; n < SIZE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t position = first + row_of_lane(i / 2);
            const int d = 8 * n + column_of_lane() + i % 2;
            if (position < shape.positions && d < shape.size)
                y[head.first + position * head.width + d] = factor[i / 2] * results.block[n][i];
        }
}

/* e^x for x that is at most slightly above 0. */
__device__ static float exponent(float x)
{
    return exp2f(x * 1.4426950408889634f);
}

/* ---- forward --------------------------------------------------------------------------------------------- */

/* A lane's state for its two rows: the highest score so far, and its share of the sum of
 * exponentials. */
struct Running {
    float most, sum;
};

/* Turns scores into exponentials relative to the highest score so far. Returns the factor for
 * earlier sums. */
template <int TILE>
__device__ static float soften(Results<TILE> &scores, int half, float factor, const int *shown,
                               Running &row)
{
    float most = row.most, sum = 0;
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float &score = scores.block[n][2 * half + i];
            score = shown[8 * n + column_of_lane() + i] ? factor * score : -INFINITY;
            most = higher(most, score);
        }
    most = lanes_highest(most, 4);
    const float kept = row.most == most ? 1 : exponent(row.most - most);
    const float beside = most == -INFINITY ? 0 : most; /* no visible key yet */
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float &score = scores.block[n][2 * half + i];
            score = exponent(score - beside);
            sum += score;
        }
    row.most = most;
    row.sum = kept * row.sum + sum;
    return kept;
}

template <bool FP16, int TILE, int SIZE>
__global__ static void __launch_bounds__(WARPS *WARP)
    forward(Shape shape, const float *q, const float *k, const float *v, const int32_t *mask,
            float *y, float *highest, float *sums)
{
    DYNAMIC_SHARED(Line, lines);
    typedef Passing<TILE, SIZE> Tiles;
    Tiles &tiles = *reinterpret_cast<Tiles *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t queries[SIZE / 16][4];
    load_rows<FP16, SIZE>(shape, head, NULL, first, q, queries);
    Results<SIZE> share = {};
    Running row[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    for (int64_t key = 0; key < shape.positions; key += TILE) {
        const bool shown = threadIdx.x < TILE && is_there(shape, head.shown, key + threadIdx.x);
        if (!__syncthreads_or(shown)) /* also: the previous tiles have been read */
            continue;
        load_tile<FP16, TILE, SIZE>(shape, head, head.shown, key, k, tiles.first);
        load_tile<FP16, TILE, SIZE>(shape, head, head.shown, key, v, tiles.second);
        if (threadIdx.x < TILE)
            tiles.shown[threadIdx.x] = shown;
        __syncthreads();
        Results<TILE> scores = {};
        multiply_by_rows<FP16, TILE, SIZE, Tiles::STRIDE>(scores, queries, tiles.first);
        const float kept[2] = {soften(scores, 0, shape.factor, tiles.shown, row[0]),
                               soften(scores, 1, shape.factor, tiles.shown, row[1])};
#pragma unroll
        for (int n = 0; n < SIZE / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                share.block[n][i] *= kept[i / 2];
        multiply_by_columns<FP16, TILE, SIZE, Tiles::STRIDE>(share, scores, tiles.second);
    }
    float factor[2];
    for (int half = 0; half < 2; half++) {
        const int64_t position = first + row_of_lane(half);
        const float sum = lanes_sum(row[half].sum, 4);
        factor[half] = 1 / sum;
        if (threadIdx.x % 4 == 0 && position < shape.positions) {
            highest[head.row + position] = row[half].most;
            sums[head.row + position] = sum;
        }
    }
    store_rows<SIZE>(shape, head, first, factor, share, y);
}

/* ---- backward -------------------------------------------------------------------------------------------- */

/* Queries stay, keys are streamed: first the row's sum of p dp (delta), then ds = p (dp - delta)
 * and dq = factor ds k. */
template <bool FP16, int TILE, int SIZE>
__global__ static void __launch_bounds__(WARPS *WARP, SIZE <= 64 ? 3 : 2)
    query_gradient(Shape shape, const float *q, const float *k, const float *v, const int32_t *mask,
                   const float *highest, const float *sums, const float *dy, float *dq,
                   float *delta)
{
    DYNAMIC_SHARED(Line, lines);
    typedef Passing<TILE, SIZE> Tiles;
    Tiles &tiles = *reinterpret_cast<Tiles *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t queries[SIZE / 16][4], gradients[SIZE / 16][4];
    load_rows<FP16, SIZE>(shape, head, NULL, first, q, queries);
    const bool any = load_rows<FP16, SIZE>(shape, head, NULL, first, dy, gradients);
    const bool used =
        __syncthreads_or(any); /* in a classifier's last block, only one query has a gradient */
    Query row[2] = {query_at(shape, head, first + row_of_lane(0), highest, sums, NULL),
                    query_at(shape, head, first + row_of_lane(1), highest, sums, NULL)};
    Results<SIZE> share = {};
    for (int pass = 0; used && pass < 2; pass++) {
        float sum[2] = {};
        for (int64_t key = 0; key < shape.positions; key += TILE) {
            const bool mine = threadIdx.x < TILE && is_there(shape, head.shown, key + threadIdx.x);
            if (!__syncthreads_or(mine))
                continue;
            load_tile<FP16, TILE, SIZE>(shape, head, head.shown, key, k, tiles.first);
            load_tile<FP16, TILE, SIZE>(shape, head, head.shown, key, v, tiles.second);
            if (threadIdx.x < TILE)
                tiles.shown[threadIdx.x] = mine;
            __syncthreads();
            Results<TILE> scores = {}, dp = {};
            multiply_by_rows<FP16, TILE, SIZE, Tiles::STRIDE>(scores, queries, tiles.first);
            multiply_by_rows<FP16, TILE, SIZE, Tiles::STRIDE>(dp, gradients, tiles.second);
#pragma unroll
            for (int n = 0; n < TILE / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const Query &of = row[i / 2];
                    const bool shown = tiles.shown[8 * n + column_of_lane() + i % 2];
                    const float score = shape.factor * scores.block[n][i];
                    const float p = shown ? exponent(score - of.highest) * of.inverse : 0;
                    sum[i / 2] += p * dp.block[n][i];
                    dp.block[n][i] = p * (dp.block[n][i] - of.delta);
                }
            if (pass == 1)
                multiply_by_columns<FP16, TILE, SIZE, Tiles::STRIDE>(share, dp, tiles.first);
        }
        if (pass == 0)
            for (int half = 0; half < 2; half++)
                row[half].delta = lanes_sum(sum[half], 4);
    }
    const float factor[2] = {shape.factor, shape.factor};
    store_rows<SIZE>(shape, head, first, factor, share, dq);
    for (int half = 0; half < 2; half++) {
        const int64_t position = first + row_of_lane(half);
        if (threadIdx.x % 4 == 0 && position < shape.positions)
            delta[head.row + position] = row[half].delta;
    }
}

/* Keys stay, queries are streamed: dv = p^T dy, dk = factor ds^T q, from transposed scores. */
template <bool FP16, int TILE, int SIZE>
__global__ static void __launch_bounds__(WARPS *WARP)
    key_gradients(Shape shape, const float *q, const float *k, const float *v, const int32_t *mask,
                  const float *highest, const float *sums, const float *dy, const float *delta,
                  float *dk, float *dv)
{
    DYNAMIC_SHARED(Line, lines);
    typedef Passing<TILE, SIZE> Tiles;
    Tiles &tiles = *reinterpret_cast<Tiles *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t keys[SIZE / 16][4], values[SIZE / 16][4];
    load_rows<FP16, SIZE>(shape, head, head.shown, first, k, keys);
    load_rows<FP16, SIZE>(shape, head, head.shown, first, v, values);
    const bool shown[2] = {is_there(shape, head.shown, first + row_of_lane(0)),
                           is_there(shape, head.shown, first + row_of_lane(1))};
    Results<SIZE> key_share = {}, value_share = {};
    for (int64_t query = 0; query < shape.positions; query += TILE) {
        __syncthreads();
        const bool any = load_tile<FP16, TILE, SIZE>(shape, head, NULL, query, dy, tiles.second);
        if (!__syncthreads_or(any))
            continue;
        load_tile<FP16, TILE, SIZE>(shape, head, NULL, query, q, tiles.first);
        if (threadIdx.x < TILE) {
            const Query of = query_at(shape, head, query + threadIdx.x, highest, sums, delta);
            tiles.highest[threadIdx.x] = of.highest;
            tiles.inverse[threadIdx.x] = of.inverse;
            tiles.delta[threadIdx.x] = of.delta;
        }
        __syncthreads();
        Results<TILE> p = {}, ds = {};
        multiply_by_rows<FP16, TILE, SIZE, Tiles::STRIDE>(p, keys, tiles.first);
        multiply_by_rows<FP16, TILE, SIZE, Tiles::STRIDE>(ds, values, tiles.second);
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int column = 8 * n + column_of_lane() + i % 2;
                const float score = shape.factor * p.block[n][i];
                p.block[n][i] =
                    shown[i / 2] ? exponent(score - tiles.highest[column]) * tiles.inverse[column]
                                 : 0;
                ds.block[n][i] = p.block[n][i] * (ds.block[n][i] - tiles.delta[column]);
            }
        multiply_by_columns<FP16, TILE, SIZE, Tiles::STRIDE>(key_share, ds, tiles.first);
        multiply_by_columns<FP16, TILE, SIZE, Tiles::STRIDE>(value_share, p, tiles.second);
    }
    const float factor[2] = {shape.factor, shape.factor}, one[2] = {1, 1};
    store_rows<SIZE>(shape, head, first, factor, key_share, dk);
    store_rows<SIZE>(shape, head, first, one, value_share, dv);
}

/* ---- launches -------------------------------------------------------------------------------------------- */

template <bool FP16, int TILE, int SIZE> static void launch_16(const Arguments &a, bool backward)
{
    const int64_t shared = sizeof(Passing<TILE, SIZE>);
    const Shape shape = shape_of(a.shape);
    const dim3 grid = grid_of(a.shape, BLOCK_ROWS);
    if (!backward) {
        launch("attention_forward", forward<FP16, TILE, SIZE>, grid, WARPS * WARP, shared, shape,
               a.q, a.k, a.v, a.mask, a.y, a.highest, a.sums);
        return;
    }
    launch("attention_backward", query_gradient<FP16, TILE, SIZE>, grid, WARPS * WARP, shared,
           shape, a.q, a.k, a.v, a.mask, a.highest, a.sums, a.dy, a.dq, a.work);
    launch("attention_backward", key_gradients<FP16, TILE, SIZE>, grid, WARPS * WARP, shared, shape,
           a.q, a.k, a.v, a.mask, a.highest, a.sums, a.dy, a.work, a.dk, a.dv);
}

template <bool FP16> static void launch_size(const Arguments &a, bool backward)
{
    if (a.shape->head_size <= 32)
        launch_16<FP16, 64, 32>(a, backward);
    else if (a.shape->head_size <= 64)
        launch_16<FP16, 64, 64>(a, backward);
    else
        launch_16<FP16, 32, 128>(a, backward);
}

bool attention_16_bits(const Arguments &a, bool backward, Precision precision)
{
    if ((precision != BF16 && precision != FP16) || a.shape->head_size > LARGEST_HEAD_16)
        return false;
    (precision == FP16 ? launch_size<true> : launch_size<false>)(a, backward);
    return true;
}
