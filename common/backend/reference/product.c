/* Matrix products with a given order of each sum. */
#include "backend/reference/arithmetic.h"

#include <stdlib.h>
#include <string.h>

/* Each addition to a sum waits for the previous one; meanwhile the other sums of a ROWS by COLUMNS
 * tile continue. */
enum { ROWS = 4, COLUMNS = 8 };

static int64_t tiles_of(int64_t rows, int64_t high)
{
    return (rows + high - 1) / high;
}

/* Defines the product for factors of `type` and sums of `sum_type`. With floats, single precision
 * need not be emulated (see rounded()). Floats that are multiplied in double and added to a float
 * are a fused multiply-add.
 * pack_: puts the rows of a factor side by side, `high` at a time, in the order of the sum; pads
 * the last rows with 0.
 * tile_: computes ROWS by COLUMNS sums.
 * multiply_: computes the whole product. */
#define PRODUCT(name, type, sum_type)                                                              \
    static type *pack_##name(Order order, Factor factor, int64_t high)                             \
    {                                                                                              \
        type *packed = malloc((size_t)(tiles_of(factor.rows, high) * high * order.count + 1) *     \
                              sizeof *packed);                                                     \
        type *to = packed;                                                                         \
        for (int64_t first = 0; first < factor.rows; first += high)                                \
            for (int64_t n = 0, i = order.first; n < order.count; n++, i = order_next(order, i))   \
                for (int64_t row = first; row < first + high; row++)                               \
                    *to++ = row < factor.rows                                                      \
                                ? (type)factor.at[row * factor.next + i * factor.step]             \
                                : 0;                                                               \
        return packed;                                                                             \
    }                                                                                              \
                                                                                                   \
    static void tile_##name(int64_t count, const type *a, const type *b,                           \
                            sum_type sums[ROWS][COLUMNS])                                          \
    {                                                                                              \
        sum_type sum[ROWS][COLUMNS] = {{0}}; /* in registers */                                    \
        for (int64_t n = 0; n < count; n++, a += ROWS, b += COLUMNS)                               \
            for (int r = 0; r < ROWS; r++)                                                         \
                for (int c = 0; c < COLUMNS; c++)                                                  \
                    sum[r][c] += a[r] * b[c];                                                      \
        memcpy(sums, sum, sizeof sum);                                                             \
    }                                                                                              \
                                                                                                   \
    static void multiply_##name(Order order, Factor a, Factor b, real *y, int64_t y_next)          \
    {                                                                                              \
        type *as = pack_##name(order, a, ROWS), *bs = pack_##name(order, b, COLUMNS);              \
        sum_type sum[ROWS][COLUMNS];                                                               \
        for (int64_t row = 0; row < a.rows; row += ROWS)                                           \
            for (int64_t column = 0; column < b.rows; column += COLUMNS) {                         \
                tile_##name(order.count, as + row * order.count, bs + column * order.count, sum);  \
                for (int64_t r = row; r < a.rows && r < row + ROWS; r++)                           \
                    for (int64_t c = column; c < b.rows && c < column + COLUMNS; c++)              \
                        y[r * y_next + c] = sum[r - row][c - column];                              \
            }                                                                                      \
        free(as);                                                                                  \
        free(bs);                                                                                  \
    }
PRODUCT(float, float, float)
PRODUCT(double, double, double)
PRODUCT(fused, double, float)

void reference_product(Order order, Factor a, Factor b, real *y, int64_t y_next)
{
    (!reference_rounds ? multiply_double
     : order.fused     ? multiply_fused
                       : multiply_float)(order, a, b, y, y_next);
}
