/* Attention on tensor cores, with products in 16 bits: tiles of 64 queries against tiles of keys
 * (or the reverse), like those of attention.cu. A warp has 16 rows of scores; their exponentials go
 * from its registers directly into the next product (Dao, arXiv:2307.08691, section 3.3). Scores,
 * softmax and sums are in single precision. The kernels round the exponentials (forward) or
 * probabilities (backward), the gradient of the scores, and their results. */
#include "backend/cuda/attention_rows_16_bits.cuh"

/* Returns n, with which the probability of a score s is 2^(factor s - n); the factor contains
 * log2(e). */
__device__ static float normal_of(const Query &query)
{
    return query.highest * LOG2_E - log2f(query.inverse);
}

/* Calls use(stage, key, seen) for each tile of keys that a block's queries see, with the next tile's
 * copies under way. */
template <int TILE, int SIZE, typename Use>
__device__ static void stream_keys(const Shape &shape, const Head &head, int64_t first,
                                   const uint16_t *k, const uint16_t *v, Passing<TILE, SIZE> &tiles,
                                   const Use &use)
{
    KeyTiles<TILE> visited(head.keys, keys_end(shape, first + BLOCK_ROWS));
    int64_t key = 0, next = 0;
    uint64_t seen = visited.next(&key), coming;
    copy_stage<TILE, SIZE>(shape, head.keys, key, seen, k, v, tiles.stage[0]);
    for (int now = 0; seen; seen = coming, key = next, now = !now) {
        coming = visited.next(&next);
        copy_stage<TILE, SIZE>(shape, head.keys, next, coming, k, v, tiles.stage[!now]);
        copies_wait();
        __syncthreads();
        use(tiles.stage[now], key, seen);
        __syncthreads(); /* all warps have read this stage: the next copies may fill it */
    }
}

/* ---- forward --------------------------------------------------------------------------------------------- */

/* A lane's state for one of its two rows: the highest score so far, and the lane's share of the sum
 * of exponentials. */
struct Running {
    float most, sum;
};

/* Turns scores into exponentials relative to the highest score so far. Returns the factor for
 * earlier sums. */
template <int TILE>
__device__ static float soften(Results<TILE> &scores, int half, float factor, Running &row)
{
    float most = row.most, sum = 0;
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float &score = scores.block[n][2 * half + i];
            score *= factor;
            most = fmaxf(most, score); /* ignores a NaN, but the sum keeps it */
        }
    most = lanes_highest(most, 4);
    const float beside = most == -INFINITY ? 0 : most; /* no visible key yet */
    const float kept = power_of_2(row.most - beside);
#pragma unroll
    for (int n = 0; n < TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float &score = scores.block[n][2 * half + i];
            score = power_of_2(score - beside);
            sum += score;
        }
    row.most = most;
    row.sum = kept * row.sum + sum;
    return kept;
}

template <bool FP16, int TILE, int SIZE>
__global__ static void __launch_bounds__(WARPS *WARP)
    forward(Shape shape, const uint16_t *q, const uint16_t *k, const uint16_t *v,
            const int32_t *mask, uint16_t *y, float *highest, float *sums)
{
    DYNAMIC_SHARED(Line, lines);
    Passing<TILE, SIZE> &tiles = *reinterpret_cast<Passing<TILE, SIZE> *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t queries[SIZE / 16][4];
    load_rows<SIZE>(shape.size, head.queries, first, q, queries);
    Results<SIZE> share = {};
    Running row[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    const auto add = [&](const Stage<TILE, SIZE> &stage, int64_t key, uint64_t seen) {
        Results<TILE> scores = {};
        multiply_by_rows<FP16, TILE, SIZE>(scores, queries, stage.first);
        hide_keys(shape, scores, first, key, seen);
        float kept[2];
#pragma unroll
        for (int half = 0; half < 2; half++)
            kept[half] = soften(scores, half, shape.factor * LOG2_E, row[half]);
#pragma unroll
        for (int n = 0; n < SIZE / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                share.block[n][i] *= kept[i / 2];
        multiply_by_columns<FP16, TILE, SIZE>(share, scores, stage.second);
    };
    stream_keys(shape, head, first, k, v, tiles, add);
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
            highest[head.row + position] = row[half].most / LOG2_E;
            sums[head.row + position] = sum;
        }
    }
    store_rows<FP16, SIZE>(shape.size, head.queries, first, factor, share, y);
}

/* ---- backward -------------------------------------------------------------------------------------------- */

/* A block keeps a tile of queries and streams the keys: first the row's sum of p dp (delta), then
 * ds = p (dp - delta) and dq = factor ds k. */
template <bool FP16, int TILE, int SIZE>
__global__ static void __launch_bounds__(WARPS *WARP, SIZE <= 64 ? 3 : 2)
    query_gradient(Shape shape, const uint16_t *q, const uint16_t *k, const uint16_t *v,
                   const int32_t *mask, const float *highest, const float *sums, const uint16_t *dy,
                   uint16_t *dq, float *delta)
{
    DYNAMIC_SHARED(Line, lines);
    Passing<TILE, SIZE> &tiles = *reinterpret_cast<Passing<TILE, SIZE> *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t queries[SIZE / 16][4], gradients[SIZE / 16][4];
    load_rows<SIZE>(shape.size, head.queries, first, q, queries);
    const bool any = load_rows<SIZE>(shape.size, head.queries, first, dy, gradients);
    const bool used =
        __syncthreads_or(any); /* in a classifier's last block, only one query has a gradient */
    float normal[2], own_delta[2] = {};
    for (int half = 0; half < 2; half++)
        normal[half] =
            normal_of(query_at(shape, head, first + row_of_lane(half), highest, sums, NULL));
    Results<SIZE> share = {};
    for (int pass = 0; used && pass < 2; pass++) {
        float sum[2] = {};
        const auto add = [&](const Stage<TILE, SIZE> &stage, int64_t key, uint64_t seen) {
            Results<TILE> scores = {}, dp = {};
            multiply_by_rows<FP16, TILE, SIZE>(scores, queries, stage.first);
            multiply_by_rows<FP16, TILE, SIZE>(dp, gradients, stage.second);
            hide_keys(shape, scores, first, key, seen);
            const float factor = shape.factor * LOG2_E;
#pragma unroll
            for (int n = 0; n < TILE / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float p = power_of_2(factor * scores.block[n][i] - normal[i / 2]);
                    sum[i / 2] += p * dp.block[n][i];
                    dp.block[n][i] = p * (dp.block[n][i] - own_delta[i / 2]);
                }
            if (pass == 1)
                multiply_by_columns<FP16, TILE, SIZE>(share, dp, stage.first);
        };
        stream_keys(shape, head, first, k, v, tiles, add);
        if (pass == 0)
            for (int half = 0; half < 2; half++)
                own_delta[half] = lanes_sum(sum[half], 4);
    }
    const float factor[2] = {shape.factor, shape.factor};
    store_rows<FP16, SIZE>(shape.size, head.queries, first, factor, share, dq);
    for (int half = 0; half < 2; half++) {
        const int64_t position = first + row_of_lane(half);
        if (threadIdx.x % 4 == 0 && position < shape.positions)
            delta[head.row + position] = own_delta[half];
    }
}

/* A block keeps a tile of keys and streams the queries: dv = p^T dy, dk = factor ds^T q, from
 * transposed scores. */
template <bool FP16, int TILE, int SIZE>
__global__ static void __launch_bounds__(WARPS *WARP)
    key_gradients(Shape shape, const uint16_t *q, const uint16_t *k, const uint16_t *v,
                  const int32_t *mask, const float *highest, const float *sums, const uint16_t *dy,
                  const float *delta, uint16_t *dk, uint16_t *dv)
{
    DYNAMIC_SHARED(Line, lines);
    Passing<TILE, SIZE> &tiles = *reinterpret_cast<Passing<TILE, SIZE> *>(lines);
    const int64_t first = (int64_t)blockIdx.x * BLOCK_ROWS;
    const Head head = head_of(shape, mask);
    uint32_t keys[SIZE / 16][4], values[SIZE / 16][4];
    const bool shown[2] = {is_there(head.keys, first + row_of_lane(0)),
                           is_there(head.keys, first + row_of_lane(1))};
    const bool used = __syncthreads_or(shown[0] || shown[1]);
    load_rows<SIZE>(shape.size, head.keys, first, k, keys);
    load_rows<SIZE>(shape.size, head.keys, first, v, values);
    Results<SIZE> key_share = {}, value_share = {};
    const auto begin = [&](int64_t query, Stage<TILE, SIZE> &stage) {
        copy_stage<TILE, SIZE>(shape, head.queries, query, bits_below(shape.positions - query), q,
                               dy, stage);
        return threadIdx.x < TILE ? query_at(shape, head, query + threadIdx.x, highest, sums, delta)
                                  : Query{};
    };
    const auto keep = [&](const Query &of, Stage<TILE, SIZE> &stage) {
        if (threadIdx.x < TILE) {
            stage.normal[threadIdx.x] = normal_of(of);
            stage.delta[threadIdx.x] = of.delta;
        }
    };
    int64_t query = used ? queries_begin(shape, first, TILE) : shape.positions;
    keep(begin(query, tiles.stage[0]), tiles.stage[0]);
    for (int now = 0; query < shape.positions; query += TILE, now = !now) {
        const Query coming = begin(query + TILE, tiles.stage[!now]);
        const Stage<TILE, SIZE> &stage = tiles.stage[now];
        copies_wait();
        __syncthreads();
        if (__syncthreads_or(has_nonzero<TILE, SIZE>(stage.second))) {
            Results<TILE> p = {}, ds = {};
            multiply_by_rows<FP16, TILE, SIZE>(p, keys, stage.first);
            multiply_by_rows<FP16, TILE, SIZE>(ds, values, stage.second);
            hide_queries(shape, p, first, query);
            const float factor = shape.factor * LOG2_E;
#pragma unroll
            for (int n = 0; n < TILE / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int column = 8 * n + column_of_lane() + i % 2;
                    p.block[n][i] = power_of_2(factor * p.block[n][i] - stage.normal[column]);
                    ds.block[n][i] = p.block[n][i] * (ds.block[n][i] - stage.delta[column]);
                }
            multiply_by_columns<FP16, TILE, SIZE>(key_share, ds, stage.first);
            multiply_by_columns<FP16, TILE, SIZE>(value_share, p, stage.second);
        }
        keep(coming, tiles.stage[!now]);
        __syncthreads();
    }
    for (int n = 0; n < SIZE / 8; n++)
        for (int i = 0; i < 4; i++)
            if (!shown[i / 2])
                key_share.block[n][i] = value_share.block[n][i] = 0;
    const float factor[2] = {shape.factor, shape.factor}, one[2] = {1, 1};
    store_rows<FP16, SIZE>(shape.size, head.keys, first, factor, key_share, dk);
    store_rows<FP16, SIZE>(shape.size, head.keys, first, one, value_share, dv);
}

/* ---- launches -------------------------------------------------------------------------------------------- */

template <bool FP16, int TILE, int SIZE> static void launch_16(const Arguments &a, bool backward)
{
    const int64_t shared = sizeof(Passing<TILE, SIZE>);
    const Shape shape = shape_of(a.shape);
    const dim3 grid = grid_of(a.shape, BLOCK_ROWS);
    if (!backward) {
        launch("attention_forward", forward<FP16, TILE, SIZE>, grid, WARPS * WARP, shared, shape,
               a.q.halves, a.k.halves, a.v.halves, a.mask, a.y.halves, a.highest, a.sums);
        return;
    }
    launch("attention_backward", query_gradient<FP16, TILE, SIZE>, grid, WARPS * WARP, shared,
           shape, a.q.halves, a.k.halves, a.v.halves, a.mask, a.highest, a.sums, a.dy.halves,
           a.dq.halves, a.work);
    launch("attention_backward", key_gradients<FP16, TILE, SIZE>, grid, WARPS * WARP, shared, shape,
           a.q.halves, a.k.halves, a.v.halves, a.mask, a.highest, a.sums, a.dy.halves, a.work,
           a.dk.halves, a.dv.halves);
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

bool kernel_attention_is_in_16_bits(const AttentionShape *shape)
{
    return precision_is_16_bits(backend_products()) && shape->head_size <= LARGEST_HEAD_16;
}

void attention_in_16_bits(const Arguments &a, bool backward)
{
    (backend_products() == FP16 ? launch_size<true> : launch_size<false>)(a, backward);
}
