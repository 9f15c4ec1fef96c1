/* Attention on tensor cores, with products in 16 bits: tiles of 64 queries against tiles of keys
 * (or the reverse), like those of attention.cu. A warp has 16 rows of scores; their exponentials go
 * from its registers directly into the next product (Dao, arXiv:2307.08691, section 3.3). Scores,
 * soft-max and sums are in single precision. The kernels round the exponentials (forward) or
 * probabilities (backward), and the gradient of the scores; q, k, v and dy are rounded already. */
#include <cmath>

#include "backend/cuda/attention_rows_16_bits.cuh"

/* e^x for x that is at most slightly above 0. */
__device__ static float exponent(float x)
{
    return exp2f(x * 1.4426950408889634f);
}

/* The last key that the query sees, counted from the tile's first key, `key`; negative if it sees
 * no key of the tile. */
__device__ static int last_seen(const Shape &shape, int64_t query, int64_t key)
{
    return (int)(query + shape.ahead - key);
}

/* The first query that sees the key, counted from the tile's first query, `query`. */
__device__ static int first_seeing(const Shape &shape, int64_t key, int64_t query)
{
    return (int)(key - shape.ahead - query);
}

/* ---- forward --------------------------------------------------------------------------------------------- */

/* A lane's state for its two rows: the highest score so far, and its share of the sum of
 * exponentials. */
struct Running {
    float most, sum;
};

/* Turns scores into exponentials relative to the highest score so far; the query sees no key of the
 * tile after `last`. Returns the factor for earlier sums. */
template <int TILE>
__device__ static float soften(Results<TILE> &scores, int half, float factor, const int *shown,
                               int last, Running &row)
{
    float most = row.most, sum = 0;
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float &score = scores.block[n][2 * half + i];
            const int column = 8 * n + column_of_lane() + i;
            score = column <= last && shown[column] ? factor * score : -INFINITY;
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
    forward(Shape shape, const uint16_t *q, const uint16_t *k, const uint16_t *v,
            const int32_t *mask, float *y, float *highest, float *sums)
{
    DYNAMIC_SHARED(Line, lines);
    typedef Passing<TILE, SIZE> Tiles;
    Tiles &tiles = *reinterpret_cast<Tiles *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t queries[SIZE / 16][4];
    load_rows<SIZE>(shape.size, head.queries, first, q, queries);
    Results<SIZE> share = {};
    Running row[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    const int64_t end = keys_end(shape, first + BLOCK_ROWS);
    for (int64_t key = 0; key < end; key += TILE) {
        const bool shown = threadIdx.x < TILE && is_there(head.keys, key + threadIdx.x);
        if (!__syncthreads_or(shown)) /* also waits until the previous tiles have been read */
            continue;
        load_tile<TILE, SIZE>(shape.size, head.keys, key, k, tiles.first);
        load_tile<TILE, SIZE>(shape.size, head.keys, key, v, tiles.second);
        if (threadIdx.x < TILE)
            tiles.shown[threadIdx.x] = shown;
        __syncthreads();
        Results<TILE> scores = {};
        multiply_by_rows<FP16, TILE, SIZE, Tiles::STRIDE>(scores, queries, tiles.first);
        float kept[2];
#pragma unroll
        for (int half = 0; half < 2; half++)
            kept[half] = soften(scores, half, shape.factor, tiles.shown,
                                last_seen(shape, first + row_of_lane(half), key), row[half]);
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
        float sum = lanes_sum(row[half].sum, 4);
        if (sum == 0) { /* the query sees no key */
            row[half].most = 0;
            sum = 1;
        }
        factor[half] = 1 / sum;
        if (threadIdx.x % 4 == 0 && position < shape.positions) {
            highest[head.row + position] = row[half].most;
            sums[head.row + position] = sum;
        }
    }
    store_rows<SIZE>(shape.size, head.queries, first, factor, share, y);
}

/* ---- backward -------------------------------------------------------------------------------------------- */

/* A block keeps a tile of queries and streams the keys: first the row's sum of p dp (delta), then
 * ds = p (dp - delta) and dq = factor ds k. */
template <bool FP16, int TILE, int SIZE>
__global__ static void __launch_bounds__(WARPS *WARP, SIZE <= 64 ? 3 : 2)
    query_gradient(Shape shape, const uint16_t *q, const uint16_t *k, const uint16_t *v,
                   const int32_t *mask, const float *highest, const float *sums, const uint16_t *dy,
                   float *dq, float *delta)
{
    DYNAMIC_SHARED(Line, lines);
    typedef Passing<TILE, SIZE> Tiles;
    Tiles &tiles = *reinterpret_cast<Tiles *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t queries[SIZE / 16][4], gradients[SIZE / 16][4];
    load_rows<SIZE>(shape.size, head.queries, first, q, queries);
    const bool any = load_rows<SIZE>(shape.size, head.queries, first, dy, gradients);
    const int64_t end = keys_end(shape, first + BLOCK_ROWS);
    const bool used =
        __syncthreads_or(any); /* in a classifier's last block, only one query has a gradient */
    Query row[2] = {query_at(shape, head, first + row_of_lane(0), highest, sums, NULL),
                    query_at(shape, head, first + row_of_lane(1), highest, sums, NULL)};
    Results<SIZE> share = {};
    for (int pass = 0; used && pass < 2; pass++) {
        float sum[2] = {};
        for (int64_t key = 0; key < end; key += TILE) {
            const bool mine = threadIdx.x < TILE && is_there(head.keys, key + threadIdx.x);
            if (!__syncthreads_or(mine))
                continue;
            load_tile<TILE, SIZE>(shape.size, head.keys, key, k, tiles.first);
            load_tile<TILE, SIZE>(shape.size, head.keys, key, v, tiles.second);
            if (threadIdx.x < TILE)
                tiles.shown[threadIdx.x] = mine;
            __syncthreads();
            const int last[2] = {last_seen(shape, first + row_of_lane(0), key),
                                 last_seen(shape, first + row_of_lane(1), key)};
            Results<TILE> scores = {}, dp = {};
            multiply_by_rows<FP16, TILE, SIZE, Tiles::STRIDE>(scores, queries, tiles.first);
            multiply_by_rows<FP16, TILE, SIZE, Tiles::STRIDE>(dp, gradients, tiles.second);
#pragma unroll
            for (int n = 0; n < TILE / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const Query &of = row[i / 2];
                    const int column = 8 * n + column_of_lane() + i % 2;
                    const bool shown = column <= last[i / 2] && tiles.shown[column];
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
    store_rows<SIZE>(shape.size, head.queries, first, factor, share, dq);
    for (int half = 0; half < 2; half++) {
        const int64_t position = first + row_of_lane(half);
        if (threadIdx.x % 4 == 0 && position < shape.positions)
            delta[head.row + position] = row[half].delta;
    }
}

/* A block keeps a tile of keys and streams the queries: dv = p^T dy, dk = factor ds^T q, from
 * transposed scores. */
template <bool FP16, int TILE, int SIZE>
__global__ static void __launch_bounds__(WARPS *WARP)
    key_gradients(Shape shape, const uint16_t *q, const uint16_t *k, const uint16_t *v,
                  const int32_t *mask, const float *highest, const float *sums, const uint16_t *dy,
                  const float *delta, float *dk, float *dv)
{
    DYNAMIC_SHARED(Line, lines);
    typedef Passing<TILE, SIZE> Tiles;
    Tiles &tiles = *reinterpret_cast<Tiles *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t keys[SIZE / 16][4], values[SIZE / 16][4];
    load_rows<SIZE>(shape.size, head.keys, first, k, keys);
    load_rows<SIZE>(shape.size, head.keys, first, v, values);
    const bool shown[2] = {is_there(head.keys, first + row_of_lane(0)),
                           is_there(head.keys, first + row_of_lane(1))};
    Results<SIZE> key_share = {}, value_share = {};
    for (int64_t query = queries_begin(shape, first, TILE); query < shape.positions;
         query += TILE) {
        __syncthreads();
        const bool any = load_tile<TILE, SIZE>(shape.size, head.queries, query, dy, tiles.second);
        if (!__syncthreads_or(any))
            continue;
        load_tile<TILE, SIZE>(shape.size, head.queries, query, q, tiles.first);
        if (threadIdx.x < TILE) {
            const Query of = query_at(shape, head, query + threadIdx.x, highest, sums, delta);
            tiles.highest[threadIdx.x] = of.highest;
            tiles.inverse[threadIdx.x] = of.inverse;
            tiles.delta[threadIdx.x] = of.delta;
        }
        __syncthreads();
        const int begin[2] = {first_seeing(shape, first + row_of_lane(0), query),
                              first_seeing(shape, first + row_of_lane(1), query)};
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
                    shown[i / 2] && column >= begin[i / 2]
                        ? exponent(score - tiles.highest[column]) * tiles.inverse[column]
                        : 0;
                ds.block[n][i] = p.block[n][i] * (ds.block[n][i] - tiles.delta[column]);
            }
        multiply_by_columns<FP16, TILE, SIZE, Tiles::STRIDE>(key_share, ds, tiles.first);
        multiply_by_columns<FP16, TILE, SIZE, Tiles::STRIDE>(value_share, p, tiles.second);
    }
    const float factor[2] = {shape.factor, shape.factor}, one[2] = {1, 1};
    store_rows<SIZE>(shape.size, head.keys, first, factor, key_share, dk);
    store_rows<SIZE>(shape.size, head.keys, first, one, value_share, dv);
}

/* ---- launches -------------------------------------------------------------------------------------------- */

template <bool FP16, int TILE, int SIZE> static void launch_16(const Arguments16 &a, bool backward)
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

template <bool FP16> static void launch_size(const Arguments16 &a, bool backward)
{
    if (a.shape->head_size <= 32)
        launch_16<FP16, 64, 32>(a, backward);
    else if (a.shape->head_size <= 64)
        launch_16<FP16, 64, 64>(a, backward);
    else
        launch_16<FP16, 32, 128>(a, backward);
}

bool kernel_attention_is_in_16_bits(const AttentionShape *shape)
{
    return precision_is_16_bits(backend_products()) && shape->head_size <= LARGEST_HEAD_16;
}

static void launch_by_size(Arguments16 a, bool backward)
{
    if (attention_fits(a.shape, &a.mask))
        (backend_products() == FP16 ? launch_size<true> : launch_size<false>)(a, backward);
}

void kernel_attention_forward_16(const AttentionShape *shape, const uint16_t *q, const uint16_t *k,
                                 const uint16_t *v, const int32_t *mask, real *y, real *highest,
                                 real *sums, real *work)
{
    Arguments16 a = {};
    a.shape = shape, a.q = q, a.k = k, a.v = v, a.mask = mask, a.y = y, a.highest = highest,
    a.sums = sums;
    launch_by_size(a, false);
}

void kernel_attention_backward_16(const AttentionShape *shape, const uint16_t *q, const uint16_t *k,
                                  const uint16_t *v, const int32_t *mask, const real *highest,
                                  const real *sums, const uint16_t *dy, real *dq, real *dk,
                                  real *dv, real *work)
{
    Arguments16 a = {};
    a.shape = shape, a.q = q, a.k = k, a.v = v, a.mask = mask, a.dy = dy, a.dq = dq, a.dk = dk,
    a.dv = dv, a.work = work;
    a.highest = (real *)highest, a.sums = (real *)sums;
    launch_by_size(a, true);
}
