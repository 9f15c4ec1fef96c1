/* Attention, a tile of queries at a time. */
#include <cblas.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/products.h"
#include "backend/cpu/tiles.h"
#include "backend/cpu/vector_math.h"

/** The scores of some queries of a head. Row r sees the keys 0..end + r·step - 1 that the mask
 *  shows. */
typedef struct Tile {
    int64_t rows, keys, end, step;
    const int32_t *mask;
} Tile;

/** Replaces the scores of `end` keys by exp(score - highest), or 0 for masked keys; with `all`,
 *  none is masked. The compiler makes and vectorises a loop for each case. */
KERNEL_HELPER void exponents_of_row(bool all, int64_t end, const int32_t *mask, real *scores,
                                    real *highest, real *sums)
{
    const real most = highest_shown(all, end, mask, scores);
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < end; j++) {
        const real e = exp_nonpositive(scores[j] - most);
        scores[j] = all || mask[j] ? e : 0;
        sum += scores[j];
    }
    *highest = sum == 0 ? 0 : most; /* the query sees no key */
    *sums = sum == 0 ? 1 : sum;
}

/** The same for each row of scores [rows,keys], with 0 for keys of the future. */
KERNEL static void masked_exponents(const Tile *tile, real *scores, real *highest, real *sums)
{
    for (int64_t i = 0; i < tile->rows; i++, scores += tile->keys) {
        const int64_t end = tile->end + i * tile->step;
        if (tile->mask)
            exponents_of_row(false, end, tile->mask, scores, highest + i, sums + i);
        else
            exponents_of_row(true, end, NULL, scores, highest + i, sums + i);
        for (int64_t j = end; j < tile->keys; j++)
            scores[j] = 0;
    }
}

/** Row i of y is that of x divided by sums[i], if `sums` is not NULL. y may be x. */
KERNEL_HELPER void divided(bool in_16_bits, int64_t rows, int64_t size, const real *sums,
                           const real *x, int64_t x_stride, Numbers y, int64_t y_stride)
{
    for (int64_t i = 0; i < rows; i++) {
        const real inverse = sums ? 1 / sums[i] : 1;
#pragma omp simd
        for (int64_t d = 0; d < size; d++)
            put_number(in_16_bits, y, i * y_stride + d, x[i * x_stride + d] * inverse);
    }
}

KERNEL static void divide_rows(int64_t rows, int64_t size, const real *sums, const real *x,
                               int64_t x_stride, Numbers y, int64_t y_stride)
{
    if (y.halves)
        divided(true, rows, size, sums, x, x_stride, y, y_stride);
    else if (y.reals)
        divided(false, rows, size, sums, x, x_stride, y, y_stride);
}

/** Turns scores of `end` keys into probabilities p again, and dp into ds = p (dp - sum of dp p over
 *  the row). */
KERNEL_HELPER void softmax_backward_of_row(bool all, int64_t end, const int32_t *mask, real most,
                                           real inverse, real *p, real *dp)
{
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < end; j++) {
        const real e = exp_nonpositive(p[j] - most) * inverse;
        p[j] = all || mask[j] ? e : 0;
        sum += p[j] * dp[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < end; j++)
        dp[j] = p[j] * (dp[j] - sum);
}

/** The same for each row, with 0 for keys of the future. */
KERNEL static void softmax_backward(const Tile *tile, const real *highest, const real *sums,
                                    real *p, real *dp)
{
    for (int64_t i = 0; i < tile->rows; i++, p += tile->keys, dp += tile->keys) {
        const int64_t end = tile->end + i * tile->step;
        if (tile->mask)
            softmax_backward_of_row(false, end, tile->mask, highest[i], 1 / sums[i], p, dp);
        else
            softmax_backward_of_row(true, end, NULL, highest[i], 1 / sums[i], p, dp);
        for (int64_t j = end; j < tile->keys; j++)
            p[j] = dp[j] = 0;
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

/** The part of the matrix from number `offset` on. */
static MatrixPart from(MatrixPart matrix, int64_t offset)
{
    return (MatrixPart){numbers_from(matrix.numbers, offset), matrix.stride};
}

/** c [rows,columns] = factor · a · b for one head, added to c if `accumulate`; flags may transpose
 *  a and b. */
static void multiply(bool bf16, CBLAS_TRANSPOSE a_flag, CBLAS_TRANSPOSE b_flag, int64_t rows,
                     int64_t columns, int64_t inner, real factor, MatrixPart a, MatrixPart b,
                     bool accumulate, real *c, int64_t c_stride)
{
    const Product product = {.a_transposed = a_flag == CblasTrans,
                             .b_transposed = b_flag == CblasTrans,
                             .accumulate = accumulate,
                             .rows = rows,
                             .columns = columns,
                             .inner = inner};
    if (bf16)
        bf16_multiply_parts(product, factor, a, b, c, c_stride);
    else
        multiply_single(&product, factor, a.numbers.reals, a.stride, b.numbers.reals, b.stride, c,
                        c_stride);
}

/** The offsets of one head of one sample. */
typedef struct Head {
    int64_t first; /**< in q, y and their gradients; rows are `width` numbers apart */
    int64_t key;   /**< in k, v and their gradients */
    int64_t row;   /**< in highest and sums */
    int64_t keys;
    const int32_t *mask;
} Head;

/* In bf16, the numbers of keys and queries are rounded up to a multiple of this, but not beyond
 * all of them: oneDNN prepares a product for each size, so there should be few. */
enum { BF16_STEP = 32 };

bool kernel_attention_is_in_16_bits(const AttentionShape *shape)
{
    return products_in_bf16() && is_worth_rounding(shape);
}

static int64_t rounded_up(int64_t count, int64_t all)
{
    const int64_t up = (count + BF16_STEP - 1) / BF16_STEP * BF16_STEP;
    return up < all ? up : all;
}

/** Returns the number of keys to compute with, at least 1: all keys after them are masked
 *  (padding). In causal attention, returns the number of all keys. The number decides in which
 *  order the library adds, so with fewer keys, a mask that hides future keys would change the last
 *  bits of the results of earlier positions. */
static int64_t keys_seen(const AttentionShape *shape, const int32_t *mask)
{
    int64_t keys = attention_keys(shape);
    while (mask && !shape->causal && keys > 1 && !mask[keys - 1])
        keys--;
    return keys;
}

static Head head_of(const AttentionShape *shape, int64_t n, const int32_t *mask, bool bf16)
{
    const int64_t b = n / shape->heads, width = shape->heads * shape->head_size,
                  keys = attention_keys(shape), a = n % shape->heads * shape->head_size;
    const int32_t *shown = mask ? mask + b * keys : NULL;
    const int64_t seen = keys_seen(shape, shown);
    return (Head){b * shape->positions * width + a, b * keys * width + a, n * shape->positions,
                  bf16 ? rounded_up(seen, keys) : seen, shown};
}

/** The tile that begins at query i of a head with queries 0..end-1. */
static Tile tile_at(const AttentionShape *shape, const Head *head, int64_t i, int64_t end)
{
    const int64_t most = rows_of_tile(shape), rows = end - i < most ? end - i : most;
    if (!shape->causal)
        return (Tile){rows, head->keys, head->keys, 0, head->mask};
    return (Tile){rows, shape->past + i + rows, shape->past + i + 1, 1, head->mask};
}

int64_t kernel_attention_work(const AttentionShape *shape)
{
    return omp_get_max_threads() * work_of_thread(shape, kernel_attention_is_in_16_bits(shape));
}

/** The arguments of a pass. In bf16, all are rounded. */
typedef struct Arguments {
    MatrixPart q, k, v, dy;
    const int32_t *mask;
    bool bf16;
} Arguments;

/** Where a thread computes a head; the last three in bf16 only: results, before they are rounded. */
typedef struct Room {
    real *p, *ds;  /**< [rows of a tile,T] each */
    real *rows;    /**< [rows of a tile,D] */
    real *dk, *dv; /**< [T,D] each */
} Room;

static Room room_of(const AttentionShape *shape, bool bf16, real *work)
{
    const int64_t rows = rows_of_tile(shape), keys = attention_keys(shape);
    Room room = {.p = work + omp_get_thread_num() * work_of_thread(shape, bf16)};
    room.ds = room.p + rows * keys;
    if (bf16) {
        room.rows = room.ds + rows * keys;
        room.dk = room.rows + rows * shape->head_size;
        room.dv = room.dk + keys * shape->head_size;
    }
    return room;
}

static void attend(const AttentionShape *shape, const Arguments *in, Numbers y, real *highest,
                   real *sums, real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size,
                  width = shape->heads * size, most = rows_of_tile(shape);
    const int threads = threads_for_heads(shape);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->batch * shape->heads; n++) {
        const Head head = head_of(shape, n, in->mask, in->bf16);
        const Room room = room_of(shape, in->bf16, work);
        real *p = room.p;
        for (int64_t i = 0; i < positions; i += most) {
            const Tile tile = tile_at(shape, &head, i, positions);
            const int64_t at = head.first + i * width, stride = in->bf16 ? size : width;
            real *share = in->bf16 ? room.rows : y.reals + at;
            multiply(in->bf16, CblasNoTrans, CblasTrans, tile.rows, tile.keys, size,
                     (real)shape->factor, from(in->q, at), from(in->k, head.key), false, p,
                     tile.keys);
            masked_exponents(&tile, p, highest + head.row + i, sums + head.row + i);
            multiply(in->bf16, CblasNoTrans, CblasNoTrans, tile.rows, size, tile.keys, 1,
                     (MatrixPart){in_full(p), tile.keys}, from(in->v, head.key), false, share,
                     stride);
            divide_rows(tile.rows, size, sums + head.row + i, share, stride, numbers_from(y, at),
                        width);
        }
    }
}

void kernel_attention_forward(const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
                              const int32_t *mask, Numbers y, real *highest, real *sums, real *work)
{
    const int64_t width = shape->heads * shape->head_size;
    const Arguments in = {
        .q = {q, width}, .k = {k, width}, .v = {v, width}, .mask = mask, .bf16 = q.halves};
    attend(shape, &in, y, highest, sums, work);
}

/** Writes zeros for positions begin..end-1 of one head: masked keys, or queries with a zero dy. */
static void clear_positions(const AttentionShape *shape, int64_t begin, int64_t end, Numbers dx)
{
    for (int64_t j = begin; j < end; j++)
        clear_numbers(dx, j * shape->heads * shape->head_size, shape->head_size);
}

/** Returns the end of the queries with a nonzero dy. The queries after it are padding or, in a
 *  classifier's last block, all but the first. */
static int64_t queries_used(const AttentionShape *shape, MatrixPart dy)
{
    int64_t end = shape->positions;
    while (end > 0 && is_zero(shape->head_size, dy.numbers, (end - 1) * dy.stride))
        end--;
    return end;
}

/** The gradients that a pass writes. */
typedef struct Gradients {
    Numbers q, k, v;
} Gradients;

static void attend_backward(const AttentionShape *shape, const Arguments *in, const real *highest,
                            const real *sums, Gradients out, real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size,
                  width = shape->heads * size, most = rows_of_tile(shape);
    const int threads = threads_for_heads(shape);
    const real factor = (real)shape->factor;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->batch * shape->heads; n++) {
        const Head head = head_of(shape, n, in->mask, in->bf16);
        const int64_t first = head.first, used = queries_used(shape, from(in->dy, first));
        const int64_t queries = in->bf16 ? rounded_up(used, positions) : used;
        const int64_t last = (queries - 1) / most * most;
        const int64_t keys = queries > 0 ? tile_at(shape, &head, last, queries).keys : 0;
        const MatrixPart k = from(in->k, first), v = from(in->v, first);
        const Room room = room_of(shape, in->bf16, work);
        const Numbers dq = numbers_from(out.q, first), dk = numbers_from(out.k, first),
                      dv = numbers_from(out.v, first);
        real *p = room.p, *ds = room.ds;
        /* Sums of several tiles are in single precision until they are complete. */
        real *dk_sum = in->bf16 ? room.dk : dk.reals, *dv_sum = in->bf16 ? room.dv : dv.reals;
        const int64_t stride = in->bf16 ? size : width;
        /* Begins with the last tile, which has the most keys: it writes dk and dv, and the others
         * add to them. */
        for (int64_t i = last; queries > 0 && i >= 0; i -= most) {
            const Tile tile = tile_at(shape, &head, i, queries);
            const int64_t rows = tile.rows, shown = tile.keys, at = first + i * width;
            const MatrixPart q = from(in->q, at), dy = from(in->dy, at),
                             weights = {in_full(p), shown}, scores = {in_full(ds), shown};
            real *share = in->bf16 ? room.rows : dq.reals + i * width;
            multiply(in->bf16, CblasNoTrans, CblasTrans, rows, shown, size, factor, q, k, false, p,
                     shown);
            multiply(in->bf16, CblasNoTrans, CblasTrans, rows, shown, size, 1, dy, v, false, ds,
                     shown);
            softmax_backward(&tile, highest + head.row + i, sums + head.row + i, p, ds);
            multiply(in->bf16, CblasNoTrans, CblasNoTrans, rows, size, shown, factor, scores, k,
                     false, share, stride);
            multiply(in->bf16, CblasTrans, CblasNoTrans, shown, size, rows, factor, scores, q,
                     i < last, dk_sum, stride);
            multiply(in->bf16, CblasTrans, CblasNoTrans, shown, size, rows, 1, weights, dy,
                     i < last, dv_sum, stride);
            if (in->bf16)
                divide_rows(rows, size, NULL, share, stride, numbers_from(dq, i * width), width);
        }
        if (in->bf16) {
            divide_rows(keys, size, NULL, dk_sum, stride, dk, width);
            divide_rows(keys, size, NULL, dv_sum, stride, dv, width);
        }
        clear_positions(shape, queries, positions, dq);
        clear_positions(shape, keys, positions, dk);
        clear_positions(shape, keys, positions, dv);
    }
}

void kernel_attention_backward(const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
                               const int32_t *mask, const real *highest, const real *sums,
                               Numbers dy, Numbers dq, Numbers dk, Numbers dv, real *work)
{
    const int64_t width = shape->heads * shape->head_size;
    const Arguments in = {.q = {q, width},
                          .k = {k, width},
                          .v = {v, width},
                          .dy = {dy, width},
                          .mask = mask,
                          .bf16 = q.halves};
    attend_backward(shape, &in, highest, sums, (Gradients){dq, dk, dv}, work);
}
