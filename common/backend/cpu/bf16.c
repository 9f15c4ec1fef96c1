/* Matrices rounded to bf16, and their products. Weights are rounded once after each change. */
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/products.h"

enum { ALIGNMENT = 64 };
enum { PRODUCTS_OF_A_NUMBER = 64 }; /**< multiply-adds in the time of one memory access */

/* ---- rounding ------------------------------------------------------------------------------------------ */

/** The upper half of each number of x [rows,columns], rounded to nearest, ties to even. NaN stays
 *  NaN; numbers that are too large become infinite. Rows of x are `stride` numbers apart. */
KERNEL static void round_rows(int64_t rows, int64_t columns, const real *x, int64_t stride,
                              uint16_t *y)
{
    for (int64_t r = 0; r < rows; r++, x += stride, y += columns)
#pragma omp simd
        for (int64_t i = 0; i < columns; i++) {
            uint32_t bits;
            memcpy(&bits, x + i, sizeof bits);
            const bool is_nan = x[i] != x[i];
            const uint32_t half = 0x7fff + (bits >> 16 & 1);
            y[i] = (uint16_t)(((bits + (is_nan ? 0 : half)) | (is_nan ? 0x400000 : 0)) >> 16);
        }
}

static void round_all(int64_t count, const real *x, uint16_t *y)
{
    FOR_PARTS(count, count, 2 * CACHE_LINE)
    round_rows(1, end - begin, x + begin, 0, y + begin);
}

/* ---- weights: rounded once after each change ------------------------------------------------------------ */

/** A weight matrix that has been rounded since its last change. */
typedef struct Rounded {
    int64_t begin, count;
} Rounded;

static struct {
    const real *numbers;
    int64_t count;
    uint16_t *room;
    Rounded *rounded;
    int64_t rounded_count, rounded_room;
} weights;

void backend_set_weights(const real *numbers, int64_t count, uint16_t *room)
{
    weights.numbers = numbers;
    weights.count = count;
    weights.room = room;
    weights.rounded_count = 0;
}

static bool is_weight(const real *x)
{
    return weights.count > 0 && x >= weights.numbers && x < weights.numbers + weights.count;
}

static const uint16_t *rounded_weight(int64_t count, const real *x)
{
    const int64_t begin = x - weights.numbers;
    for (int64_t i = 0; i < weights.rounded_count; i++)
        if (weights.rounded[i].begin == begin && weights.rounded[i].count == count)
            return weights.room + begin;
    if (weights.rounded_count == weights.rounded_room) {
        weights.rounded_room = 2 * weights.rounded_room + 64;
        weights.rounded = realloc(weights.rounded, (size_t)weights.rounded_room * sizeof(Rounded));
    }
    weights.rounded[weights.rounded_count++] = (Rounded){begin, count};
    round_all(count, x, weights.room + begin);
    return weights.room + begin;
}

/* ---- products ------------------------------------------------------------------------------------------ */

/** Space for a matrix that is not a weight; it only grows. */
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

/** The matrix that does not change, and its rounded copy. */
static struct {
    const real *numbers;
    int64_t count; /* 0: not rounded yet */
    Room room;
} unchanged;

void backend_round_once(const real *x)
{
    unchanged.numbers = x;
    unchanged.count = 0;
}

static const uint16_t *rounded(int64_t count, const real *x, Room *room)
{
    if (is_weight(x))
        return rounded_weight(count, x);
    if (x == unchanged.numbers) {
        if (count == unchanged.count)
            return unchanged.room.memory;
        unchanged.count = count;
        room = &unchanged.room;
    }
    uint16_t *y = room_for(count * (int64_t)sizeof *y, room);
    round_all(count, x, y);
    return y;
}

bool bf16_multiplies(int64_t rows, int64_t columns, int64_t inner)
{
    return products_in_bf16() && rows * columns * inner >= BF16_LEAST;
}

void bf16_multiply(Product product, const real *a, const real *b, const real *bias, real *c)
{
    static Room room_of_a, room_of_b;
    product.threads =
        threads_for(product.rows * product.columns * product.inner / PRODUCTS_OF_A_NUMBER);
    products_in_bf16()->multiply(&product, rounded(product.rows * product.inner, a, &room_of_a),
                                 rounded(product.inner * product.columns, b, &room_of_b), bias, c);
}

static const uint16_t *rounded_part(int64_t rows, int64_t columns, const real *x, int64_t stride,
                                    Room *room)
{
    uint16_t *y = room_for(rows * columns * (int64_t)sizeof *y, room);
    round_rows(rows, columns, x, stride, y);
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

void bf16_multiply_parts(Product product, real factor, const real *a, int64_t a_stride,
                         const real *b, int64_t b_stride, real *c, int64_t c_stride)
{
    static _Thread_local Room room_of_a, room_of_b, room_of_c;
    const int64_t rows = product.rows, columns = product.columns, inner = product.inner;
    const bool accumulate = product.accumulate;
    product.accumulate = false;
    product.threads = 1;
    real *ab = c;
    if (accumulate || c_stride != columns)
        ab = room_for(rows * columns * (int64_t)sizeof *ab, &room_of_c);
    products_in_bf16()->multiply(
        &product,
        product.a_transposed ? rounded_part(inner, rows, a, a_stride, &room_of_a)
                             : rounded_part(rows, inner, a, a_stride, &room_of_a),
        product.b_transposed ? rounded_part(columns, inner, b, b_stride, &room_of_b)
                             : rounded_part(inner, columns, b, b_stride, &room_of_b),
        NULL, ab);
    if (ab != c || factor != 1)
        scale_into(rows, columns, factor, ab, accumulate, c, c_stride);
}
