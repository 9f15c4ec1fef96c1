/* Rows of a table, looked up and added to. */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"

void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, const real *table,
                           real *y)
{
    const int threads = threads_for(count * columns);
    const size_t bytes = (size_t)columns * sizeof *y;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] == NO_ID)
            memset(y + i * columns, 0, bytes);
        else
            memcpy(y + i * columns, table + ids[i] * columns, bytes);
    }
}

/** Columns begin..end-1: the threads share the columns, so that each table row is summed in order. */
KERNEL static void add_rows(int64_t count, int64_t columns, int64_t begin, int64_t end,
                            const int32_t *ids, const real *dy, real *dtable)
{
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] == NO_ID)
            continue;
        real *row = dtable + ids[i] * columns;
#pragma omp simd
        for (int64_t c = begin; c < end; c++)
            row[c] += dy[i * columns + c];
    }
}

void kernel_lookup_backward(int64_t count, int64_t columns, const int32_t *ids, const real *dy,
                            real *dtable)
{
    FOR_PARTS(count * columns, columns, CACHE_LINE)
    add_rows(count, columns, begin, end, ids, dy, dtable);
}

/** Are some rows zeros? A few of them tell, the last of the tensor among them: padding comes at the end of a text. */
static bool some_are_zero(int64_t rows, int64_t columns, const real *x)
{
    enum { LOOKS = 32 };
    for (int64_t i = 1; i <= LOOKS && rows > 0; i++)
        if (is_zero(columns, x + (i * rows + LOOKS - 1) / LOOKS * columns - columns))
            return true;
    return false;
}

int64_t kernel_rows_in_use(int64_t rows, int64_t columns, const real *x, int32_t *index)
{
    int64_t count = 0;
    if (!some_are_zero(rows, columns, x))
        return rows;
    for (int64_t r = 0; r < rows; r++)
        if (!is_zero(columns, x + r * columns))
            index[count++] = (int32_t)r;
    return 4 * count < 3 * rows ? count : rows; /* they are copied, and the result is */
}
