#include <cblas.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y)
{
    /* With a factor of 0 the library would fill y with zeros first, so filling it with the bias costs nothing
     * more. */
    for (int64_t r = 0; bias && r < rows; r++)
        memcpy(y + r * out, bias, (size_t)out * sizeof *y);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)out, (int)in, 1, x, (int)in, weight,
                (int)in, bias ? 1 : 0, y, (int)out);
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, const real *dy, const real *weight,
                                  real *dx, bool accumulate)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)in, (int)out, 1, dy, (int)out,
                weight, (int)in, accumulate ? 1 : 0, dx, (int)in);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy, const real *x,
                                   real *dweight, bool accumulate)
{
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)out, (int)in, (int)rows, 1, dy, (int)out, x,
                (int)in, accumulate ? 1 : 0, dweight, (int)in);
}

/** Adds the column sums of dy to dbias, for columns begin..end-1; four rows at a time, to touch dbias less
 * often. */
KERNEL static void add_column_sums(int64_t rows, int64_t out, int64_t begin, int64_t end, const real *dy,
                                   real *dbias)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const real *row = dy + r * out;
#pragma omp simd
        for (int64_t c = begin; c < end; c++)
            dbias[c] += (row[c] + row[out + c]) + (row[2 * out + c] + row[3 * out + c]);
    }
    for (; r < rows; r++)
#pragma omp simd
        for (int64_t c = begin; c < end; c++)
            dbias[c] += dy[r * out + c];
}

void kernel_linear_backward_bias(int64_t rows, int64_t out, const real *dy, real *dbias)
{
    const int threads = threads_for(rows * out);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++)
        add_column_sums(rows, out, part_begin(out, CACHE_LINE, t, threads),
                        part_begin(out, CACHE_LINE, t + 1, threads), dy, dbias);
}
