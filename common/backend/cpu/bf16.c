/* Matrices rounded to bf16, and their products. */
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/products.h"

enum { ALIGNMENT = 64 };
enum { PRODUCTS_OF_A_NUMBER = 64 }; /**< multiply-adds in the time of one memory access */

/* ---- rounding ------------------------------------------------------------------------------------------ */

KERNEL void bf16_round(int64_t count, const real *x, uint16_t *y)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        y[i] = narrowed(x[i]);
}

KERNEL void bf16_widen(int64_t count, const uint16_t *x, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        y[i] = widened(x[i]);
}

void kernel_round(int64_t count, const real *x, uint16_t *y)
{
    FOR_PARTS(count, count, 2 * CACHE_LINE)
    bf16_round(end - begin, x + begin, y + begin);
}

void kernel_widen(int64_t count, const uint16_t *x, real *y)
{
    FOR_PARTS(count, count, 2 * CACHE_LINE)
    bf16_widen(end - begin, x + begin, y + begin);
}

enum { NUMBERS_AT_ONCE = 256 }; /**< of sums, in the L1 cache */

KERNEL static void add_columns(int64_t rows, int64_t columns, int64_t begin, int64_t end,
                               const uint16_t *x, uint16_t *sums)
{
    real sum[NUMBERS_AT_ONCE];
    for (; begin < end; begin += NUMBERS_AT_ONCE) {
        const int64_t count = end - begin < NUMBERS_AT_ONCE ? end - begin : NUMBERS_AT_ONCE;
        bf16_widen(count, x + begin, sum);
        for (int64_t r = 1; r < rows; r++)
#pragma omp simd
            for (int64_t c = 0; c < count; c++)
                sum[c] += widened(x[r * columns + begin + c]);
        bf16_round(count, sum, sums + begin);
    }
}

void kernel_add_halves(int64_t rows, int64_t columns, const uint16_t *x, uint16_t *sums)
{
    FOR_PARTS(rows * columns, columns, 2 * CACHE_LINE)
    add_columns(rows, columns, begin, end, x, sums);
}

/* ---- linear layers ------------------------------------------------------------------------------------- */

void bf16_multiply(Product product, const uint16_t *a, const uint16_t *b, const real *bias,
                   Numbers c)
{
    product.bias = bias;
    product.in_16_bits = c.halves;
    product.threads =
        threads_for(product.rows * product.columns * product.inner / PRODUCTS_OF_A_NUMBER);
    products_in_bf16()->multiply(&product, a, b, bias, c);
}

/* ---- parts of matrices --------------------------------------------------------------------------------- */

/** Space of a thread for a matrix; it only grows. */
typedef struct Room {
    void *memory;
    int64_t bytes;
} Room;

static void *room_for(int64_t bytes, Room *room)
{
    if (bytes > room->bytes) {
        free(room->memory);
        room->bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        room->memory = aligned_alloc(ALIGNMENT, (size_t)room->bytes);
    }
    return room->memory;
}

/** The rows of a part one after the other, rounded if they are not rounded yet. */
static const uint16_t *packed(int64_t rows, int64_t columns, MatrixPart part, Room *room)
{
    const uint16_t *rounded = part.numbers.halves;
    if (rounded && part.stride == columns)
        return rounded;
    uint16_t *y = room_for(rows * columns * (int64_t)sizeof *y, room);
    if (rounded)
        for (int64_t r = 0; r < rows; r++)
            memcpy(y + r * columns, rounded + r * part.stride, (size_t)columns * sizeof *y);
    else
        bf16_round(rows * columns, part.numbers.reals, y);
    return y;
}

/** c = factor · x, added to c if `accumulate`. x may be c. */
KERNEL static void scale_into(int64_t rows, int64_t columns, real factor, const real *x,
                              bool accumulate, real *c, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++, x += columns, c += stride)
#pragma omp simd
        for (int64_t i = 0; i < columns; i++)
            c[i] = factor * x[i] + (accumulate ? c[i] : 0);
}

void bf16_multiply_parts(Product product, real factor, MatrixPart a, MatrixPart b, real *c,
                         int64_t c_stride)
{
    static _Thread_local Room room_of_a, room_of_b, room_of_c;
    const int64_t rows = product.rows, columns = product.columns, inner = product.inner;
    const bool accumulate = product.accumulate;
    product.accumulate = false;
    product.threads = 1;
    real *ab = c;
    if (accumulate || c_stride != columns)
        ab = room_for(rows * columns * (int64_t)sizeof *ab, &room_of_c);
    products_in_bf16()->multiply(&product,
                                 product.a_transposed ? packed(inner, rows, a, &room_of_a)
                                                      : packed(rows, inner, a, &room_of_a),
                                 product.b_transposed ? packed(columns, inner, b, &room_of_b)
                                                      : packed(inner, columns, b, &room_of_b),
                                 NULL, in_full(ab));
    if (ab != c || factor != 1)
        scale_into(rows, columns, factor, ab, accumulate, c, c_stride);
}
