/* GELU, SwiGLU and dropout; GELU and dropout in one pass if they follow each other. */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/vector_math.h"

/** kernel_NAME_forward() and kernel_NAME_backward(). */
#define GELU(name, by_tanh)                                                                        \
    KERNEL static void name##_part(int64_t count, const real *x, real *y)                          \
    {                                                                                              \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) y[i] = gelu(x[i], by_tanh);        \
    }                                                                                              \
                                                                                                   \
    void kernel_##name##_forward(int64_t count, const real *x, real *y)                            \
    {                                                                                              \
        FOR_PARTS(count, count, CACHE_LINE)                                                        \
        name##_part(end - begin, x + begin, y + begin);                                            \
    }                                                                                              \
                                                                                                   \
    KERNEL static void name##_backward_part(int64_t count, const real *dy, const real *x,          \
                                            real *dx)                                              \
    {                                                                                              \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) dx[i] =                            \
            dy[i] * gelu_slope(x[i], by_tanh);                                                     \
    }                                                                                              \
                                                                                                   \
    void kernel_##name##_backward(int64_t count, const real *dy, const real *x, real *dx)          \
    {                                                                                              \
        FOR_PARTS(count, count, CACHE_LINE)                                                        \
        name##_backward_part(end - begin, dy + begin, x + begin, dx + begin);                      \
    }

GELU(gelu, false)
GELU(gelu_tanh, true)

KERNEL static void swiglu_part(int64_t count, const real *gate, const real *up, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        y[i] = silu_at(gate[i]).value * up[i];
}

void kernel_swiglu_forward(int64_t count, const real *gate, const real *up, real *y)
{
    FOR_PARTS(count, count, CACHE_LINE)
    swiglu_part(end - begin, gate + begin, up + begin, y + begin);
}

KERNEL static void swiglu_backward_part(int64_t count, const real *dy, const real *gate,
                                        const real *up, real *dgate, real *dup)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        const Silu silu = silu_at(gate[i]);
        const real d = dy[i];
        dgate[i] = d * up[i] * silu.slope;
        dup[i] = d * silu.value;
    }
}

void kernel_swiglu_backward(int64_t count, const real *dy, const real *gate, const real *up,
                            real *dgate, real *dup)
{
    FOR_PARTS(count, count, CACHE_LINE)
    swiglu_backward_part(end - begin, dy + begin, gate + begin, up + begin, dgate + begin,
                         dup + begin);
}

/* ---- dropout ------------------------------------------------------------------------------------------- */

enum { COLUMNS_AT_ONCE = 256 }; /**< numbers drawn in advance, in the L1 cache */
enum { BLOCKS_AT_ONCE = 16 };   /**< blocks of four numbers, drawn together */

/** Philox's counter for a row and its first block of four columns. */
typedef struct Counter {
    uint32_t sample_low, sample_high, position, block;
} Counter;

/** Sets draws[4b + k] to word k of block b after the counter's; computes a multiple of
 * BLOCKS_AT_ONCE blocks. Each word is in the low half of 64 bits, as the products need it, so
 * nothing moves between vector lanes. */
KERNEL_HELPER void draw(PhiloxKey key, Counter counter, int64_t blocks, uint32_t *draws)
{
    const uint64_t low = 0xFFFFFFFFu;
    for (int64_t first = 0; first < blocks; first += BLOCKS_AT_ONCE) {
        uint64_t pairs[2 * BLOCKS_AT_ONCE];
#pragma omp simd
        for (int64_t b = 0; b < BLOCKS_AT_ONCE; b++) {
            uint64_t c0 = counter.sample_low, c1 = counter.sample_high, c2 = counter.position;
            uint64_t c3 = counter.block + (uint32_t)(first + b);
            uint32_t k0 = key.word[0], k1 = key.word[1];
            for (int round = 0; round < 10; round++) {
                const uint64_t p0 = (c0 & low) * 0xD2511F53u, p1 = (c2 & low) * 0xCD9E8D57u;
                c0 = p1 >> 32 ^ c1 ^ k0;
                c1 = p1;
                c2 = p0 >> 32 ^ c3 ^ k1;
                c3 = p0;
                k0 += 0x9E3779B9u;
                k1 += 0xBB67AE85u;
            }
            pairs[2 * b] = (c0 & low) | c1 << 32;
            pairs[2 * b + 1] = (c2 & low) | c3 << 32;
        }
        for (int64_t n = 0; n < 2 * BLOCKS_AT_ONCE; n++) {
            draws[4 * first + 2 * n] = (uint32_t)pairs[n];
            draws[4 * first + 2 * n + 1] = (uint32_t)(pairs[n] >> 32);
        }
    }
}

/** Draws rows begin..end-1 of the mask. */
KERNEL static void draw_part(int64_t begin, int64_t end, int64_t columns, const DropoutMask *mask,
                             uint32_t *kept)
{
    uint32_t draws[COLUMNS_AT_ONCE + 4 * BLOCKS_AT_ONCE];
    const uint32_t threshold = dropout_threshold(mask->probability);
    for (int64_t r = begin; r < end; r++) {
        const uint64_t sample = (uint64_t)mask->samples[r / mask->positions];
        for (int64_t first = 0; first < columns; first += COLUMNS_AT_ONCE) {
            const int64_t count =
                columns - first < COLUMNS_AT_ONCE ? columns - first : COLUMNS_AT_ONCE;
            const int64_t global = mask->column_begin + first;
            const Counter counter = {(uint32_t)sample, (uint32_t)(sample >> 32),
                                     (uint32_t)(mask->position_begin + r % mask->positions),
                                     (uint32_t)(global / 4)};
            draw(mask->key, counter, (global % 4 + count + 3) / 4, draws);
            const uint32_t *drawn = draws + global % 4;
            uint32_t *word = kept + r * dropout_words(columns) + first / DROPOUT_BITS;
            for (int64_t c = 0; c < count; c += DROPOUT_BITS, drawn += DROPOUT_BITS) {
                const int64_t bits = count - c < DROPOUT_BITS ? count - c : DROPOUT_BITS;
                uint32_t set = 0;
#pragma omp simd reduction(| : set)
                for (int64_t b = 0; b < bits; b++)
                    set |= drawn[b] >> 8 >= threshold ? UINT32_C(1) << b : 0;
                *word++ = set;
            }
        }
    }
}

void kernel_dropout_draw(int64_t rows, int64_t columns, const DropoutMask *mask, uint32_t *kept)
{
    FOR_PARTS(rows * columns, rows, 1)
    draw_part(begin, end, columns, mask, kept);
}

/** Runs an operation with dropout on `rows` rows; only GELU_DROPOUT_BACKWARD reads dy. */
KERNEL_HELPER void dropout_rows(DropoutOperation operation, int64_t rows, int64_t columns,
                                double probability, const uint32_t *kept, const real *dy,
                                const real *x, real *y)
{
    const real factor = (real)(1 / (1 - probability));
    for (int64_t r = 0; r < rows; r++) {
        if (operation == GELU_DROPOUT_BACKWARD && is_zero(columns, dy + r * columns)) {
            memset(y + r * columns, 0, (size_t)columns * sizeof *y);
            kept += dropout_words(columns);
            continue;
        }
        for (int64_t first = 0; first < columns; first += DROPOUT_BITS) {
            const int64_t count = columns - first < DROPOUT_BITS ? columns - first : DROPOUT_BITS;
            const int64_t at = r * columns + first;
            const uint32_t set = *kept++;
#pragma omp simd
            for (int64_t c = 0; c < count; c++) {
                const real value = operation == DROPOUT        ? x[at + c]
                                   : operation == GELU_DROPOUT ? gelu(x[at + c], false)
                                                               : dy[at + c];
                const real scaled = set & UINT32_C(1) << c ? value * factor : 0;
                y[at + c] = operation == GELU_DROPOUT_BACKWARD
                                ? gelu_slope(x[at + c], false) * scaled
                                : scaled;
            }
        }
    }
}

/** Calls dropout_rows() with a constant, so the compiler makes a loop for each operation. */
KERNEL static void dropout_part(DropoutOperation operation, int64_t rows, int64_t columns,
                                double probability, const uint32_t *kept, const real *dy,
                                const real *x, real *y)
{
    if (operation == DROPOUT)
        dropout_rows(DROPOUT, rows, columns, probability, kept, NULL, x, y);
    else if (operation == GELU_DROPOUT)
        dropout_rows(GELU_DROPOUT, rows, columns, probability, kept, NULL, x, y);
    else if (dy)
        dropout_rows(GELU_DROPOUT_BACKWARD, rows, columns, probability, kept, dy, x, y);
}

void kernel_dropout(DropoutOperation operation, int64_t rows, int64_t columns, double probability,
                    const uint32_t *kept, const real *dy, const real *x, real *y)
{
    FOR_PARTS(rows * columns, rows, 1)
    dropout_part(operation, end - begin, columns, probability,
                 kept + begin * dropout_words(columns), dy ? dy + begin * columns : NULL,
                 x + begin * columns, y + begin * columns);
}
