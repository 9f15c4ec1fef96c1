/* Matrices rounded to bf16, and their products. Weights are rounded once after each change. */
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/products.h"

enum { ALIGNMENT = 64 };
enum { PRODUCTS_OF_A_NUMBER = 64 }; /**< multiply-adds in the time of one memory access */

/* ---- rounding ------------------------------------------------------------------------------------------ */

/** The upper half of each number, rounded to nearest, ties to even. NaN stays NaN; numbers that are
 *  too large become infinite. */
KERNEL static void round_part(int64_t count, const real *x, uint16_t *y)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        const uint32_t nearest = bits + 0x7fff + (bits >> 16 & 1);
        const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
        y[i] = (uint16_t)((is_nan ? bits | 0x400000 : nearest) >> 16);
    }
}

static void round_all(int64_t count, const real *x, uint16_t *y)
{
    FOR_PARTS(count, count, 2 * CACHE_LINE)
    round_part(end - begin, x + begin, y + begin);
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
    uint16_t *numbers;
    int64_t count;
} Room;

static const uint16_t *rounded(int64_t count, const real *x, Room *room)
{
    if (is_weight(x))
        return rounded_weight(count, x);
    if (count > room->count) {
        free(room->numbers);
        room->count = (count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        room->numbers = aligned_alloc(ALIGNMENT, (size_t)room->count * sizeof *room->numbers);
    }
    round_all(count, x, room->numbers);
    return room->numbers;
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
