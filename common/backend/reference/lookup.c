#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, const real *table,
                           real *y)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < columns; c++)
            y[i * columns + c] = ids[i] == NO_ID ? 0 : table[ids[i] * columns + c];
}

void kernel_lookup_backward(int64_t count, int64_t columns, const int32_t *ids, const real *dy,
                            real *dtable)
{
    const Order order = reference_order(count);
    for (int64_t n = 0, i = order.first; n < count; n++, i = order_next(order, i)) {
        if (ids[i] == NO_ID)
            continue;
        real *row = dtable + ids[i] * columns;
        for (int64_t c = 0; c < columns; c++)
            row[c] = rounded(row[c] + dy[i * columns + c]);
    }
}

int64_t kernel_rows_in_use(int64_t rows, int64_t columns, const real *x, int32_t *index)
{
    return rows;
}
