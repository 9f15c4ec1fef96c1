/* GELU, SwiGLU and dropout; GELU and dropout in one pass if they follow each other. */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/vector_math.h"

/** kernel_NAME_forward() and kernel_NAME_backward(). */
#define GELU(name, by_tanh)                                                                        \
    KERNEL_HELPER void name##_loop(bool in_16_bits, int64_t count, Numbers x, Numbers y)           \
    {                                                                                              \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++)                                    \
            put_number(in_16_bits, y, i, gelu(number_at(in_16_bits, x, i), by_tanh));              \
    }                                                                                              \
                                                                                                   \
    KERNEL static void name##_part(int64_t count, Numbers x, Numbers y)                            \
    {                                                                                              \
        if (x.halves && y.halves)                                                                  \
            name##_loop(true, count, x, y);                                                        \
        else if (x.reals && y.reals)                                                               \
            name##_loop(false, count, x, y);                                                       \
    }                                                                                              \
                                                                                                   \
    void kernel_##name##_forward(int64_t count, Numbers x, Numbers y)                              \
    {                                                                                              \
        FOR_PARTS(count, count, 2 * CACHE_LINE)                                                    \
        name##_part(end - begin, numbers_from(x, begin), numbers_from(y, begin));                  \
    }                                                                                              \
                                                                                                   \
    KERNEL_HELPER void name##_backward_loop(bool in_16_bits, int64_t count, const real *dy,        \
                                            Numbers x, real *dx)                                   \
    {                                                                                              \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) dx[i] =                            \
            dy[i] * gelu_slope(number_at(in_16_bits, x, i), by_tanh);                              \
    }                                                                                              \
                                                                                                   \
    KERNEL static void name##_backward_part(int64_t count, const real *dy, Numbers x, real *dx)    \
    {                                                                                              \
        if (x.halves)                                                                              \
            name##_backward_loop(true, count, dy, x, dx);                                          \
        else if (x.reals)                                                                          \
            name##_backward_loop(false, count, dy, x, dx);                                         \
    }                                                                                              \
                                                                                                   \
    void kernel_##name##_backward(int64_t count, const real *dy, Numbers x, real *dx)              \
    {                                                                                              \
        FOR_PARTS(count, count, CACHE_LINE)                                                        \
        name##_backward_part(end - begin, dy + begin, numbers_from(x, begin), dx + begin);         \
    }

GELU(gelu, false)
GELU(gelu_tanh, true)

KERNEL_HELPER void swiglu_loop(bool in_16_bits, int64_t count, Numbers gate, Numbers up, Numbers y)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        put_number(in_16_bits, y, i,
                   silu_at(number_at(in_16_bits, gate, i)).value * number_at(in_16_bits, up, i));
}

KERNEL static void swiglu_part(int64_t count, Numbers gate, Numbers up, Numbers y)
{
    if (gate.halves && up.halves && y.halves)
        swiglu_loop(true, count, gate, up, y);
    else if (gate.reals && up.reals && y.reals)
        swiglu_loop(false, count, gate, up, y);
}

void kernel_swiglu_forward(int64_t count, Numbers gate, Numbers up, Numbers y)
{
    FOR_PARTS(count, count, 2 * CACHE_LINE)
    swiglu_part(end - begin, numbers_from(gate, begin), numbers_from(up, begin),
                numbers_from(y, begin));
}

KERNEL_HELPER void swiglu_backward_loop(bool in_16_bits, int64_t count, const real *dy,
                                        Numbers gate, Numbers up, real *dgate, real *dup)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        const Silu silu = silu_at(number_at(in_16_bits, gate, i));
        const real d = dy[i];
        dgate[i] = d * number_at(in_16_bits, up, i) * silu.slope;
        dup[i] = d * silu.value;
    }
}

KERNEL static void swiglu_backward_part(int64_t count, const real *dy, Numbers gate, Numbers up,
                                        real *dgate, real *dup)
{
    if (gate.halves && up.halves)
        swiglu_backward_loop(true, count, dy, gate, up, dgate, dup);
    else if (gate.reals && up.reals)
        swiglu_backward_loop(false, count, dy, gate, up, dgate, dup);
}

void kernel_swiglu_backward(int64_t count, const real *dy, Numbers gate, Numbers up, real *dgate,
                            real *dup)
{
    FOR_PARTS(count, count, CACHE_LINE)
    swiglu_backward_part(end - begin, dy + begin, numbers_from(gate, begin),
                         numbers_from(up, begin), dgate + begin, dup + begin);
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
KERNEL_HELPER void dropout_rows(DropoutOperation operation, bool in_16_bits, int64_t rows,
                                int64_t columns, double probability, const uint32_t *kept,
                                const real *dy, Numbers x, Numbers y)
{
    const real factor = (real)(1 / (1 - probability));
    const bool is_gradient = operation == GELU_DROPOUT_BACKWARD;
    for (int64_t r = 0; r < rows; r++) {
        if (is_gradient && is_zero(columns, dy + r * columns)) {
            memset(y.reals + r * columns, 0, (size_t)columns * sizeof *y.reals);
            kept += dropout_words(columns);
            continue;
        }
        for (int64_t first = 0; first < columns; first += DROPOUT_BITS) {
            const int64_t count = columns - first < DROPOUT_BITS ? columns - first : DROPOUT_BITS;
            const int64_t at = r * columns + first;
            const uint32_t set = *kept++;
#pragma omp simd
            for (int64_t c = 0; c < count; c++) {
                const real from = number_at(in_16_bits, x, at + c);
                const real value = operation == DROPOUT        ? from
                                   : operation == GELU_DROPOUT ? gelu(from, false)
                                                               : dy[at + c];
                const real scaled = set & UINT32_C(1) << c ? value * factor : 0;
                put_number(in_16_bits && !is_gradient, y, at + c,
                           is_gradient ? gelu_slope(from, false) * scaled : scaled);
            }
        }
    }
}

/** Calls dropout_rows() with constants, so the compiler makes a loop for each. */
#define DROPOUT_ROWS(operation, gradient, to)                                                      \
    if (x.halves && y.to)                                                                          \
        dropout_rows(operation, true, rows, columns, probability, kept, gradient, x, y);           \
    else if (x.reals && y.reals)                                                                   \
    dropout_rows(operation, false, rows, columns, probability, kept, gradient, x, y)

KERNEL static void dropout_part(DropoutOperation operation, int64_t rows, int64_t columns,
                                double probability, const uint32_t *kept, const real *dy, Numbers x,
                                Numbers y)
{
    if (operation == DROPOUT) {
        DROPOUT_ROWS(DROPOUT, NULL, halves);
    } else if (operation == GELU_DROPOUT) {
        DROPOUT_ROWS(GELU_DROPOUT, NULL, halves);
    } else if (dy) {
        DROPOUT_ROWS(GELU_DROPOUT_BACKWARD, dy, reals);
    }
}

void kernel_dropout(DropoutOperation operation, int64_t rows, int64_t columns, double probability,
                    const uint32_t *kept, const real *dy, Numbers x, Numbers y)
{
    FOR_PARTS(rows * columns, rows, 1)
    dropout_part(operation, end - begin, columns, probability,
                 kept + begin * dropout_words(columns), dy ? dy + begin * columns : NULL,
                 numbers_from(x, begin * columns), numbers_from(y, begin * columns));
}
