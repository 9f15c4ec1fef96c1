#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"

void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, const real *table, real *y)
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

/** Columns begin..end-1 of lookup_backward: the threads share the columns, so that each table row is summed
 * in order. */
KERNEL static void add_rows(int64_t count, int64_t columns, int64_t begin, int64_t end, const int32_t *ids,
                            const real *dy, real *dtable)
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

void kernel_lookup_backward(int64_t count, int64_t columns, const int32_t *ids, const real *dy, real *dtable)
{
    const int threads = threads_for(count * columns);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++)
        add_rows(count, columns, part_begin(columns, CACHE_LINE, t, threads),
                 part_begin(columns, CACHE_LINE, t + 1, threads), ids, dy, dtable);
}
