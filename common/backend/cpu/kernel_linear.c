/* Linear layers: matrix products by CBLAS or oneDNN, column sums. */
#include <cblas.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/products.h"

enum { PRODUCTS_OF_A_NUMBER = 32 }; /**< multiply-adds in the time of one memory access */
enum { ROWS_OF_A_BLOCK = 16 };      /**< of the result, as the library's kernels process them */

/** c [rows,columns] = a · b, with flags for transposes; added to c if `accumulate`, or to `bias` in
 * each row if it is not NULL. Our threads share the rows of c, and the library uses one thread in
 * each: two thread pools, its and ours, would wait for each other's processors. */
static void multiply(CBLAS_TRANSPOSE a_flag, CBLAS_TRANSPOSE b_flag, int64_t rows, int64_t columns,
                     int64_t inner, const real *a, const real *b, const real *bias, bool accumulate,
                     real *c)
{
    if (bf16_multiplies(rows, columns, inner)) {
        const Product shape = {
            a_flag == CblasTrans, b_flag == CblasTrans, bias, accumulate, rows, columns, inner, 0};
        bf16_multiply(shape, a, b, bias, c);
        return;
    }
    SingleMultiply *const large = products_of_large(rows, columns, inner);
    const int64_t a_row = a_flag == CblasNoTrans ? inner : 1, blocks = rows / ROWS_OF_A_BLOCK;
    const int64_t a_stride = a_flag == CblasNoTrans ? inner : rows,
                  b_stride = b_flag == CblasNoTrans ? columns : inner;
    const int worth = threads_for(rows * columns * inner / PRODUCTS_OF_A_NUMBER);
    const int threads = blocks < worth ? (int)(blocks > 1 ? blocks : 1) : worth;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(rows, ROWS_OF_A_BLOCK, t, threads);
        const int64_t end = part_begin(rows, ROWS_OF_A_BLOCK, t + 1, threads);
        /* Takes no extra time: with a factor of 0, the library would fill c with zeros instead. */
        for (int64_t r = begin; bias && r < end; r++)
            memcpy(c + r * columns, bias, (size_t)columns * sizeof *c);
        const real factor = bias || accumulate ? 1 : 0;
        if (large)
            large(a_flag == CblasTrans ? 'T' : 'N', b_flag == CblasTrans ? 'T' : 'N', end - begin,
                  columns, inner, a + begin * a_row, a_stride, b, b_stride, factor,
                  c + begin * columns, columns);
        else
            cblas_sgemm(CblasRowMajor, a_flag, b_flag, (int)(end - begin), (int)columns, (int)inner,
                        1, a + begin * a_row, (int)a_stride, b, (int)b_stride, factor,
                        c + begin * columns, (int)columns);
    }
}

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y)
{
    multiply(CblasNoTrans, CblasTrans, rows, out, in, x, weight, bias, false, y);
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, const real *dy,
                                  const real *weight, real *dx, bool accumulate)
{
    multiply(CblasNoTrans, CblasNoTrans, rows, in, out, dy, weight, NULL, accumulate, dx);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy,
                                   const real *x, real *dweight, bool accumulate)
{
    multiply(CblasTrans, CblasNoTrans, out, in, rows, dy, x, NULL, accumulate, dweight);
}

/** Adds the column sums of dy to dbias, for columns begin..end-1, four rows at a time. */
KERNEL static void add_column_sums(int64_t rows, int64_t out, int64_t begin, int64_t end,
                                   const real *dy, real *dbias)
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
    FOR_PARTS(rows * out, out, CACHE_LINE)
    add_column_sums(rows, out, begin, end, dy, dbias);
}
