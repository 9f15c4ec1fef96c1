/* Attention, a tile of queries at a time. */
#include <cblas.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/vector_math.h"

/* Computes scores for a tile of queries at a time, against every visible key. The backward pass
 * recomputes them (Dao et al., arXiv:2205.14135), so memory grows with the number of positions, not
 * its square. With smaller tiles, the library packs keys and values too often; larger ones do not
 * fit the cache. */
enum { ROWS_OF_A_TILE = 256 };

static int64_t rows_of_tile(const AttentionShape *shape)
{
    return shape->positions < ROWS_OF_A_TILE ? shape->positions : ROWS_OF_A_TILE;
}

/** The keys from here on are all hidden, like padding: nothing is computed for them. */
static int64_t keys_seen(int64_t positions, const int32_t *mask)
{
    while (positions > 0 && !mask[positions - 1])
        positions--;
    return positions;
}

/** Replaces each row of scores [rows,keys] by exp(score - highest) where `mask` shows the key, and
 *  0 elsewhere. */
KERNEL static void masked_exponents(int64_t rows, int64_t keys, const int32_t *mask, real *scores,
                                    real *highest, real *sums)
{
    for (int64_t i = 0; i < rows; i++, scores += keys) {
        const real most = highest_shown(keys, mask, scores);
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < keys; j++) {
            const real e = exp_nonpositive(scores[j] - most);
            scores[j] = mask[j] ? e : 0;
            sum += scores[j];
        }
        highest[i] = most;
        sums[i] = sum;
    }
}

/** Divides each row of y [rows,size] by its sum. */
KERNEL static void divide_rows(int64_t rows, int64_t size, const real *sums, real *y,
                               int64_t stride)
{
    for (int64_t i = 0; i < rows; i++, y += stride) {
        const real inverse = 1 / sums[i];
#pragma omp simd
        for (int64_t d = 0; d < size; d++)
            y[d] *= inverse;
    }
}

/** Turns scores into probabilities p again, and dp into ds = p (dp - sum of dp p over the row). */
KERNEL static void softmax_backward(int64_t rows, int64_t keys, const int32_t *mask,
                                    const real *highest, const real *sums, real *p, real *dp)
{
    for (int64_t i = 0; i < rows; i++, p += keys, dp += keys) {
        const real most = highest[i], inverse = 1 / sums[i];
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < keys; j++) {
            const real e = exp_nonpositive(p[j] - most) * inverse;
            p[j] = mask[j] ? e : 0;
            sum += p[j] * dp[j];
        }
#pragma omp simd
        for (int64_t j = 0; j < keys; j++)
            dp[j] = p[j] * (dp[j] - sum);
    }
}

/** Each thread takes one head of one sample at a time. */
static int threads_for_heads(const AttentionShape *shape)
{
    const int64_t heads = shape->batch * shape->heads;
    const int threads =
        threads_for(heads * shape->positions * (shape->positions + shape->head_size));
    return heads < threads ? (int)heads : threads;
}

/** c [rows,columns] = factor · a · b for one head, added to c if `accumulate`; flags may transpose
 *  a and b. */
static void multiply(CBLAS_TRANSPOSE a_flag, CBLAS_TRANSPOSE b_flag, int64_t rows, int64_t columns,
                     int64_t inner, real factor, const real *a, int64_t a_stride, const real *b,
                     int64_t b_stride, bool accumulate, real *c, int64_t c_stride)
{
    cblas_sgemm(CblasRowMajor, a_flag, b_flag, (int)rows, (int)columns, (int)inner, factor, a,
                (int)a_stride, b, (int)b_stride, accumulate ? 1 : 0, c, (int)c_stride);
}

/** The offsets of one head of one sample. */
typedef struct Head {
    int64_t first; /**< in q, k, v, y and their gradients; rows are `width` numbers apart */
    int64_t row;   /**< in highest and sums */
    int64_t keys;
    const int32_t *mask;
} Head;

static Head head_of(const AttentionShape *shape, int64_t n, const int32_t *mask)
{
    const int64_t b = n / shape->heads, width = shape->heads * shape->head_size;
    const int32_t *shown = mask + b * shape->positions;
    return (Head){b * shape->positions * width + n % shape->heads * shape->head_size,
                  n * shape->positions, keys_seen(shape->positions, shown), shown};
}

int64_t kernel_attention_work(const AttentionShape *shape)
{
    return omp_get_max_threads() * 2 * rows_of_tile(shape) * shape->positions;
}

void kernel_attention_forward(const AttentionShape *shape, const real *q, const real *k,
                              const real *v, const int32_t *mask, real *y, real *highest,
                              real *sums, real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size,
                  width = shape->heads * size;
    const int64_t tile = rows_of_tile(shape);
    const int threads = threads_for_heads(shape);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->batch * shape->heads; n++) {
        const Head head = head_of(shape, n, mask);
        real *p = work + omp_get_thread_num() * 2 * tile * positions;
        for (int64_t i = 0; i < positions; i += tile) {
            const int64_t rows = positions - i < tile ? positions - i : tile,
                          at = head.first + i * width;
            multiply(CblasNoTrans, CblasTrans, rows, head.keys, size, (real)shape->factor, q + at,
                     width, k + head.first, width, false, p, head.keys);
            masked_exponents(rows, head.keys, head.mask, p, highest + head.row + i,
                             sums + head.row + i);
            multiply(CblasNoTrans, CblasNoTrans, rows, size, head.keys, 1, p, head.keys,
                     v + head.first, width, false, y + at, width);
            divide_rows(rows, size, sums + head.row + i, y + at, width);
        }
    }
}

/** Writes zeros for positions begin..end-1 of one head: keys that are hidden, or queries on which
 *  nothing depends. */
static void clear_positions(const AttentionShape *shape, int64_t begin, int64_t end, real *dx)
{
    const int64_t size = shape->head_size, width = shape->heads * size;
    for (int64_t j = begin; j < end; j++)
        memset(dx + j * width, 0, (size_t)size * sizeof *dx);
}

/** The queries from here on have zero dy: padding or, in a classifier's last block, all but the
 *  first. */
static int64_t queries_used(const AttentionShape *shape, const real *dy)
{
    const int64_t size = shape->head_size, width = shape->heads * size;
    int64_t end = shape->positions;
    while (end > 0 && is_zero(size, dy + (end - 1) * width))
        end--;
    return end;
}

void kernel_attention_backward(const AttentionShape *shape, const real *q, const real *k,
                               const real *v, const int32_t *mask, const real *highest,
                               const real *sums, const real *dy, real *dq, real *dk, real *dv,
                               real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size,
                  width = shape->heads * size;
    const int64_t tile = rows_of_tile(shape);
    const int threads = threads_for_heads(shape);
    const real factor = (real)shape->factor;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->batch * shape->heads; n++) {
        const Head head = head_of(shape, n, mask);
        const int64_t queries = queries_used(shape, dy + head.first);
        const int64_t keys = queries > 0 ? head.keys : 0, first = head.first;
        real *p = work + omp_get_thread_num() * 2 * tile * positions, *ds = p + tile * positions;
        for (int64_t i = 0; i < queries; i += tile) {
            const int64_t rows = queries - i < tile ? queries - i : tile, at = first + i * width;
            multiply(CblasNoTrans, CblasTrans, rows, keys, size, factor, q + at, width, k + first,
                     width, false, p, keys);
            multiply(CblasNoTrans, CblasTrans, rows, keys, size, 1, dy + at, width, v + first,
                     width, false, ds, keys);
            softmax_backward(rows, keys, head.mask, highest + head.row + i, sums + head.row + i, p,
                             ds);
            multiply(CblasNoTrans, CblasNoTrans, rows, size, keys, factor, ds, keys, k + first,
                     width, false, dq + at, width);
            multiply(CblasTrans, CblasNoTrans, keys, size, rows, factor, ds, keys, q + at, width,
                     i > 0, dk + first, width);
            multiply(CblasTrans, CblasNoTrans, keys, size, rows, 1, p, keys, dy + at, width, i > 0,
                     dv + first, width);
        }
        clear_positions(shape, queries, positions, dq + first);
        clear_positions(shape, keys, positions, dk + first);
        clear_positions(shape, keys, positions, dv + first);
    }
}
