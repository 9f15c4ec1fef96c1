/* Attention in single precision: tiles of TILE queries against tiles of TILE keys in shared memory,
 * so no matrix of scores is ever written (Dao et al., arXiv:2205.14135). Eight neighbouring threads
 * share a row of a tile; each holds every eighth number of that row's result. */
#include "backend/cuda/attention.cuh"
#include "base/language.h"
#include "base/run.h"

enum { PARTS = 8 };

/* Loads rows first.. of one head into a tile whose rows are size + 1 apart; zeros for hidden or
 * missing positions. Returns whether this thread loaded a nonzero number. */
template <int TILE>
__device__ static bool load(int64_t size, const Rows &rows, int64_t first, const float *x,
                            float *tile)
{
    bool any = false;
    for (int64_t i = threadIdx.x; i < TILE * size; i += TILE * PARTS) {
        const int64_t r = i / size, d = i % size, position = first + r;
        const float value =
            is_there(rows, position) ? x[rows.first + position * rows.width + d] : 0;
        tile[r * (size + 1) + d] = value;
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

/* Adds factor · weights [TILE] · tile to this thread's share of a row: the numbers d = part,
 * part + PARTS, ... */
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

/* Writes this thread's share of row `position`, times factor. */
template <int SIZE>
__device__ static void store(int64_t size, const Rows &rows, int64_t position, float factor,
                             const float *share, float *y)
{
    const int part = threadIdx.x % PARTS;
    if (position >= rows.count)
        return;
#pragma unroll
    for (int i = 0; i < SIZE / PARTS; i++)
        if (part + i * PARTS < size)
            y[rows.first + position * rows.width + part + i * PARTS] = factor * share[i];
}

__device__ static bool sees(const Shape &shape, const Head &head, int64_t query, int64_t key)
{
    return key - query <= shape.ahead && is_there(head.keys, key);
}

static int64_t numbers_of_tiles(int tile, int64_t size, int tiles, int squares)
{
    return tiles * tile * (size + 1) + squares * tile * (tile + 1);
}

/* Requests the shared memory if it is more than 48 KiB; not every GPU has that much. */
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
        cudaGetLastError(); /* resets the error, which is reported here */
        misuse("with more HEADS, each head is smaller",
               "attention: this GPU has too little shared memory for heads of %lld numbers",
               (long long)shape->head_size);
    }
    launch(name, kernel, grid_of(shape, tile), (unsigned)(tile * PARTS), bytes, shape_of(shape),
           arguments...);
}

/* ---- forward --------------------------------------------------------------------------------------------- */

template <int TILE, int SIZE>
__global__ static void forward(Shape shape, const float *q, const float *k, const float *v,
                               const int32_t *mask, float *y, float *highest, float *sums)
{
    DYNAMIC_SHARED(float, shared);
    const int64_t stride = shape.size + 1, first = (int64_t)blockIdx.x * TILE;
    float *queries = shared, *keys = queries + TILE * stride, *values = keys + TILE * stride,
          *p = values + TILE * stride;
    const Head head = head_of(shape, mask);
    const int row = threadIdx.x / PARTS, part = threadIdx.x % PARTS;
    float most = -INFINITY, sum = 0, share[SIZE / PARTS] = {};
    load<TILE>(shape.size, head.queries, first, q, queries);
    const int64_t end = keys_end(shape, first + TILE);
    for (int64_t key = 0; key < end; key += TILE) {
        __syncthreads(); /* the previous tiles have been read */
        load<TILE>(shape.size, head.keys, key, k, keys);
        load<TILE>(shape.size, head.keys, key, v, values);
        __syncthreads();
        float score[TILE / PARTS], tile_most = most;
        for (int j = 0; j < TILE / PARTS; j++) {
            const int column = part + j * PARTS;
            const bool shown = sees(shape, head, first + row, key + column);
            score[j] = shown ? shape.factor *
                                   dot(shape.size, queries + row * stride, keys + column * stride)
                             : -INFINITY;
            tile_most = higher(tile_most, score[j]);
        }
        tile_most = lanes_highest(tile_most, PARTS);
        /* Sums relative to a lower maximum are scaled down to the new one. */
        const float kept = most == tile_most ? 1 : expf(most - tile_most);
        float tile_sum = 0;
        for (int j = 0; j < TILE / PARTS; j++) {
            const float e = score[j] == -INFINITY ? 0 : expf(score[j] - tile_most);
            p[row * (TILE + 1) + part + j * PARTS] = e;
            tile_sum += e;
        }
        sum = kept * sum + lanes_sum(tile_sum, PARTS);
        most = tile_most;
        for (int i = 0; i < SIZE / PARTS; i++)
            share[i] *= kept;
        __syncwarp(); /* eight neighbouring threads have written a row of p */
        add_rows<TILE, SIZE>(shape.size, 1, p + row * (TILE + 1), values, share);
    }
    if (sum == 0) { /* the query sees no key */
        most = 0;
        sum = 1;
    }
    store<SIZE>(shape.size, head.queries, first + row, 1 / sum, share, y);
    if (part == 0 && first + row < shape.positions) {
        highest[head.row + first + row] = most;
        sums[head.row + first + row] = sum;
    }
}

/* ---- backward -------------------------------------------------------------------------------------------- */

/* With p = softmax(scores) and dp = dy v^T: ds = p (dp - delta), where delta is the sum of p dp
 * over the row; dq = factor ds k, dk = factor ds^T q, dv = p^T dy. Recomputes scores by tiles of
 * queries (dq), then by tiles of keys (dk and dv), so one block sums each result. */

__device__ static float probability(const Shape &shape, const Query &query, const float *q,
                                    const float *k, bool shown)
{
    return shown ? expf(shape.factor * dot(shape.size, q, k) - query.highest) * query.inverse : 0;
}

template <int TILE, int SIZE>
__global__ static void query_gradient(Shape shape, const float *q, const float *k, const float *v,
                                      const int32_t *mask, const float *highest, const float *sums,
                                      const float *dy, float *dq, float *delta)
{
    DYNAMIC_SHARED(float, shared);
    const int64_t stride = shape.size + 1, first = (int64_t)blockIdx.x * TILE;
    float *queries = shared, *gradients = queries + TILE * stride,
          *keys = gradients + TILE * stride;
    float *values = keys + TILE * stride, *ds = values + TILE * stride;
    const Head head = head_of(shape, mask);
    const int row = threadIdx.x / PARTS, part = threadIdx.x % PARTS;
    const int64_t position = first + row;
    Query query = query_at(shape, head, position, highest, sums, NULL);
    float share[SIZE / PARTS] = {};
    load<TILE>(shape.size, head.queries, first, q, queries);
    const bool any = load<TILE>(shape.size, head.queries, first, dy, gradients);
    const int64_t end = keys_end(shape, first + TILE);
    const bool used =
        __syncthreads_or(any); /* in a classifier's last block, only one query has a gradient */
    /* The first pass computes the row's sum of p dp, the second one ds and dq from it. */
    for (int pass = 0; used && pass < 2; pass++) {
        float sum = 0;
        for (int64_t key = 0; key < end; key += TILE) {
            __syncthreads();
            load<TILE>(shape.size, head.keys, key, k, keys);
            load<TILE>(shape.size, head.keys, key, v, values);
            __syncthreads();
            for (int j = 0; j < TILE / PARTS; j++) {
                const int column = part + j * PARTS;
                const bool shown = sees(shape, head, position, key + column);
                const float p = probability(shape, query, queries + row * stride,
                                            keys + column * stride, shown);
                const float dp =
                    dot(shape.size, gradients + row * stride, values + column * stride);
                sum += p * dp;
                ds[row * (TILE + 1) + column] = p * (dp - query.delta);
            }
            __syncwarp();
            if (pass == 1)
                add_rows<TILE, SIZE>(shape.size, shape.factor, ds + row * (TILE + 1), keys, share);
        }
        if (pass == 0)
            query.delta = lanes_sum(sum, PARTS);
    }
    store<SIZE>(shape.size, head.queries, position, 1, share, dq);
    if (part == 0 && position < shape.positions)
        delta[head.row + position] = query.delta;
}

template <int TILE, int SIZE>
__global__ static void key_gradients(Shape shape, const float *q, const float *k, const float *v,
                                     const int32_t *mask, const float *highest, const float *sums,
                                     const float *dy, const float *delta, float *dk, float *dv)
{
    DYNAMIC_SHARED(float, shared);
    const int64_t stride = shape.size + 1, first = (int64_t)blockIdx.x * TILE;
    float *keys = shared, *values = keys + TILE * stride, *queries = values + TILE * stride;
    float *gradients = queries + TILE * stride, *p = gradients + TILE * stride,
          *ds = p + TILE * (TILE + 1);
    const Head head = head_of(shape, mask);
    const int row = threadIdx.x / PARTS, part = threadIdx.x % PARTS;
    const int64_t position = first + row;
    float key_share[SIZE / PARTS] = {}, value_share[SIZE / PARTS] = {};
    load<TILE>(shape.size, head.keys, first, k, keys);
    load<TILE>(shape.size, head.keys, first, v, values);
    for (int64_t query = queries_begin(shape, first, TILE); query < shape.positions;
         query += TILE) {
        __syncthreads();
        const bool any = load<TILE>(shape.size, head.queries, query, dy, gradients);
        if (!__syncthreads_or(any))
            continue;
        load<TILE>(shape.size, head.queries, query, q, queries);
        __syncthreads();
        for (int j = 0; j < TILE / PARTS; j++) {
            const int column = part + j * PARTS;
            const Query of = query_at(shape, head, query + column, highest, sums, delta);
            const bool shown = sees(shape, head, query + column, position);
            const float p_ij =
                probability(shape, of, queries + column * stride, keys + row * stride, shown);
            const float dp = dot(shape.size, gradients + column * stride, values + row * stride);
            p[row * (TILE + 1) + column] = p_ij;
            ds[row * (TILE + 1) + column] = p_ij * (dp - of.delta);
        }
        __syncwarp();
        add_rows<TILE, SIZE>(shape.size, shape.factor, ds + row * (TILE + 1), queries, key_share);
        add_rows<TILE, SIZE>(shape.size, 1, p + row * (TILE + 1), gradients, value_share);
    }
    store<SIZE>(shape.size, head.keys, position, 1, key_share, dk);
    store<SIZE>(shape.size, head.keys, position, 1, value_share, dv);
}

/* ---- launches -------------------------------------------------------------------------------------------- */

template <int TILE, int SIZE> static void launch_forward(const Arguments &a)
{
    launch_tiles("attention_forward", forward<TILE, SIZE>, a.shape, TILE, 3, 1, a.q.reals,
                 a.k.reals, a.v.reals, a.mask, a.y.reals, a.highest, a.sums);
}

template <int TILE, int SIZE> static void launch_backward(const Arguments &a)
{
    launch_tiles("attention_backward", query_gradient<TILE, SIZE>, a.shape, TILE, 4, 1, a.q.reals,
                 a.k.reals, a.v.reals, a.mask, a.highest, a.sums, a.dy.reals, a.dq.reals, a.work);
    launch_tiles("attention_backward", key_gradients<TILE, SIZE>, a.shape, TILE, 4, 2, a.q.reals,
                 a.k.reals, a.v.reals, a.mask, a.highest, a.sums, a.dy.reals, a.work, a.dk.reals,
                 a.dv.reals);
}

enum { LARGEST_HEAD = 1024, MOST_HEADS = 65535 /* of all samples: the grid's second dimension */ };

/* Ends the run if these kernels cannot take this shape. Copies the mask to the device (see
 * brought_near()). Returns false if there is nothing to compute. */
static bool attention_fits(const AttentionShape *shape, const int32_t **mask)
{
    const int64_t size = shape->head_size, heads = shape->batch * shape->heads;
    if (heads * shape->positions == 0)
        return false;
    if (size > LARGEST_HEAD || heads > MOST_HEADS)
        misuse(size > LARGEST_HEAD ? N_("with more HEADS, each head is smaller")
                                   : N_("choose a smaller BATCH_SIZE"),
               "attention: a GPU takes up to %d numbers per head and up to %d heads over all "
               "samples, but there are %lld samples with %lld heads of %lld",
               LARGEST_HEAD, MOST_HEADS, (long long)shape->batch, (long long)shape->heads,
               (long long)size);
    if (*mask)
        *mask = brought_near(*mask, shape->batch * attention_keys(shape));
    return true;
}

/* Selects the kernel with the smallest SIZE that holds a head. The longer the rows of a tile, the
 * fewer of them fit in shared memory. */
static void in_single_precision(const Arguments &a, bool backward)
{
    const int64_t size = a.shape->head_size;
    if (size <= 32)
        (backward ? launch_backward<32, 32> : launch_forward<32, 32>)(a);
    else if (size <= 64)
        (backward ? launch_backward<32, 64> : launch_forward<32, 64>)(a);
    else if (size <= 128)
        (backward ? launch_backward<16, 128> : launch_forward<32, 128>)(a);
    else if (size <= 256)
        (backward ? launch_backward<8, 256> : launch_forward<16, 256>)(a);
    else
        (backward ? launch_backward<8, 1024> : launch_forward<8, 1024>)(a);
}

static void attend(Arguments a, bool backward)
{
    if (attention_fits(a.shape, &a.mask))
        (a.q.halves ? attention_in_16_bits : in_single_precision)(a, backward);
}

void kernel_attention_forward(const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
                              const int32_t *mask, Numbers y, real *highest, real *sums, real *work)
{
    Arguments a = {};
    a.shape = shape, a.q = q, a.k = k, a.v = v, a.mask = mask, a.y = y, a.highest = highest,
    a.sums = sums;
    attend(a, false);
}

void kernel_attention_backward(const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
                               const int32_t *mask, const real *highest, const real *sums,
                               Numbers dy, Numbers dq, Numbers dk, Numbers dv, real *work)
{
    Arguments a = {};
    a.shape = shape, a.q = q, a.k = k, a.v = v, a.mask = mask, a.dy = dy, a.dq = dq, a.dk = dk,
    a.dv = dv, a.work = work;
    a.highest = (real *)highest, a.sums = (real *)sums;
    attend(a, true);
}

/* One number per row of scores: delta. */
int64_t kernel_attention_work(const AttentionShape *shape)
{
    return shape->batch * shape->heads * shape->positions;
}
