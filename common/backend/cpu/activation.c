/* GELU, SwiGLU and dropout; GELU and dropout in one pass if they follow each other. */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/products.h"
#include "backend/cpu/vector_math.h"

/* ---- numbers of either type ------------------------------------------------------------------------------ */

enum { MOST_TENSORS = 5, BLOCK = 256 }; /* numbers of each tensor in the L1 cache */

/** Computes `count` numbers of each result, which follow the arguments in `x`. */
typedef void Compute(int64_t count, real *const *x);

/** Calls `compute` on all numbers. Those in 16 bits are widened, and rounded, a block at a time: the
 *  compiler vectorises neither with the computation as well as on their own. */
static void in_blocks(Compute *compute, int64_t count, int arguments, int tensors, const Numbers *x)
{
    real blocks[MOST_TENSORS][BLOCK], *part[MOST_TENSORS] = {0};
    const int64_t most = x[0].halves ? BLOCK : count;
    for (int64_t begin = 0; begin < count; begin += most) {
        const int64_t rest = count - begin, numbers = rest < most ? rest : most;
        for (int t = 0; t < tensors; t++)
            part[t] = x[t].halves ? blocks[t] : x[t].reals;
        for (int t = 0; t < arguments && x[0].halves; t++)
            bf16_widen(numbers, x[t].halves + begin, blocks[t]);
        compute(numbers, part);
        for (int t = arguments; t < tensors && x[0].halves; t++)
            bf16_round(numbers, blocks[t], x[t].halves + begin);
    }
}

/** The same, by all threads. */
static void by_all(Compute *compute, int64_t count, int arguments, int tensors, const Numbers *x)
{
    FOR_PARTS(count, count, 2 * CACHE_LINE)
    {
        Numbers part[MOST_TENSORS];
        for (int i = 0; i < tensors; i++)
            part[i] = numbers_from(x[i], begin);
        in_blocks(compute, end - begin, arguments, tensors, part);
    }
}

/* ---- GELU and SwiGLU ------------------------------------------------------------------------------------- */

/** kernel_NAME_forward() and kernel_NAME_backward(). */
#define GELU(name, by_tanh)                                                                        \
    KERNEL static void name##_of(int64_t count, real *const *x)                                    \
    {                                                                                              \
        const real *from = x[0];                                                                   \
        real *y = x[1];                                                                            \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) y[i] = gelu(from[i], by_tanh);     \
    }                                                                                              \
                                                                                                   \
    void kernel_##name##_forward(int64_t count, Numbers x, Numbers y)                              \
    {                                                                                              \
        by_all(name##_of, count, 1, 2, (Numbers[]){x, y});                                         \
    }                                                                                              \
                                                                                                   \
    KERNEL static void name##_gradient(int64_t count, real *const *x)                              \
    {                                                                                              \
        const real *dy = x[0], *from = x[1];                                                       \
        real *dx = x[2];                                                                           \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) dx[i] =                            \
            dy[i] * gelu_slope(from[i], by_tanh);                                                  \
    }                                                                                              \
                                                                                                   \
    void kernel_##name##_backward(int64_t count, Numbers dy, Numbers x, Numbers dx)                \
    {                                                                                              \
        by_all(name##_gradient, count, 2, 3, (Numbers[]){dy, x, dx});                              \
    }

GELU(gelu, false)
GELU(gelu_tanh, true)

KERNEL static void swiglu_of(int64_t count, real *const *x)
{
    const real *gate = x[0], *up = x[1];
    real *y = x[2];
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        y[i] = silu_at(gate[i]).value * up[i];
}

void kernel_swiglu_forward(int64_t count, Numbers gate, Numbers up, Numbers y)
{
    by_all(swiglu_of, count, 2, 3, (Numbers[]){gate, up, y});
}

KERNEL static void swiglu_gradients(int64_t count, real *const *x)
{
    const real *dy = x[0], *gate = x[1], *up = x[2];
    real *dgate = x[3], *dup = x[4];
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        const Silu silu = silu_at(gate[i]);
        const real d = dy[i];
        dgate[i] = d * up[i] * silu.slope;
        dup[i] = d * silu.value;
    }
}

void kernel_swiglu_backward(int64_t count, Numbers dy, Numbers gate, Numbers up, Numbers dgate,
                            Numbers dup)
{
    by_all(swiglu_gradients, count, 3, 5, (Numbers[]){dy, gate, up, dgate, dup});
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

/** Runs an operation with dropout on part of a row; only GELU_DROPOUT_BACKWARD reads dy. */
KERNEL_HELPER void dropout_loop(DropoutOperation operation, int64_t count, real factor,
                                const uint32_t *kept, const real *dy, const real *x, real *y)
{
    for (int64_t first = 0; first < count; first += DROPOUT_BITS) {
        const int64_t bits = count - first < DROPOUT_BITS ? count - first : DROPOUT_BITS;
        const uint32_t set = *kept++;
#pragma omp simd
        for (int64_t c = 0; c < bits; c++) {
            const real from = x[first + c];
            const real value = operation == DROPOUT        ? from
                               : operation == GELU_DROPOUT ? gelu(from, false)
                                                           : dy[first + c];
            const real scaled = set & UINT32_C(1) << c ? value * factor : 0;
            y[first + c] =
                operation == GELU_DROPOUT_BACKWARD ? gelu_slope(from, false) * scaled : scaled;
        }
    }
}

/** Calls dropout_loop() with a constant, so the compiler makes a loop for each operation. */
KERNEL static void dropout_part(DropoutOperation operation, int64_t count, real factor,
                                const uint32_t *kept, const real *dy, const real *x, real *y)
{
    if (operation == DROPOUT)
        dropout_loop(DROPOUT, count, factor, kept, NULL, x, y);
    else if (operation == GELU_DROPOUT)
        dropout_loop(GELU_DROPOUT, count, factor, kept, NULL, x, y);
    else if (dy)
        dropout_loop(GELU_DROPOUT_BACKWARD, count, factor, kept, dy, x, y);
}

static void dropout_row(DropoutOperation operation, int64_t columns, real factor,
                        const uint32_t *kept, Numbers dy, Numbers x, Numbers y)
{
    real blocks[3][BLOCK];
    const bool is_gradient = operation == GELU_DROPOUT_BACKWARD;
    if (is_gradient && is_zero(columns, dy, 0)) {
        clear_numbers(y, 0, columns);
        return;
    }
    if (x.reals && y.reals)
        dropout_part(operation, columns, factor, kept, dy.reals, x.reals, y.reals);
    for (int64_t first = 0; first < columns && x.halves && y.halves; first += BLOCK) {
        const int64_t count = columns - first < BLOCK ? columns - first : BLOCK;
        if (is_gradient)
            bf16_widen(count, dy.halves + first, blocks[0]);
        bf16_widen(count, x.halves + first, blocks[1]);
        dropout_part(operation, count, factor, kept + first / DROPOUT_BITS, blocks[0], blocks[1],
                     blocks[2]);
        bf16_round(count, blocks[2], y.halves + first);
    }
}

void kernel_dropout(DropoutOperation operation, int64_t rows, int64_t columns, double probability,
                    const uint32_t *kept, Numbers dy, Numbers x, Numbers y)
{
    const real factor = (real)(1 / (1 - probability));
    FOR_PARTS(rows * columns, rows, 1)
    for (int64_t r = begin; r < end; r++)
        dropout_row(operation, columns, factor, kept + r * dropout_words(columns),
                    numbers_from(dy, r * columns), numbers_from(x, r * columns),
                    numbers_from(y, r * columns));
}
