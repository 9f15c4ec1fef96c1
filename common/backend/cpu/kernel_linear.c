/* Linear layers: matrix products by CBLAS or oneDNN, column sums. */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/products.h"

enum { PRODUCTS_OF_A_NUMBER = 32 }; /**< multiply-adds in the time of one memory access */
enum { ROWS_OF_A_BLOCK = 16 };      /**< of the result, as the library's kernels process them */

/** c = a · b in single precision, added to c if the product accumulates, or to `bias` in each row if
 *  `bias` is not NULL. Our threads share the rows of c, and the library uses one thread in each of ours: two
 *  thread pools, its and ours, would wait for each other's processors. */
static void multiply_reals(Product product, const real *a, const real *b, const real *bias, real *c)
{
    const int64_t rows = product.rows, columns = product.columns, inner = product.inner;
    const int64_t a_row = product.a_transposed ? 1 : inner, blocks = rows / ROWS_OF_A_BLOCK;
    const int64_t a_step = product.a_transposed ? rows : inner,
                  b_step = product.b_transposed ? inner : columns;
    const int worth = threads_for(rows * columns * inner / PRODUCTS_OF_A_NUMBER);
    const int threads = blocks < worth ? (int)(blocks > 1 ? blocks : 1) : worth;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(rows, ROWS_OF_A_BLOCK, t, threads);
        const int64_t end = part_begin(rows, ROWS_OF_A_BLOCK, t + 1, threads);
        /* Takes no extra time: without `accumulate`, the library would fill c with zeros instead. */
        for (int64_t r = begin; bias && r < end; r++)
            memcpy(c + r * columns, bias, (size_t)columns * sizeof *c);
        Product part = product;
        part.rows = end - begin;
        part.accumulate = bias || product.accumulate;
        multiply_single(&part, 1, a + begin * a_row, a_step, b, b_step, c + begin * columns,
                        columns);
    }
}

static void multiply(Product product, Numbers a, Numbers b, const real *bias, Numbers c)
{
    if (a.halves)
        bf16_multiply(product, a.halves, b.halves, bias, c);
    else
        multiply_reals(product, a.reals, b.reals, bias, c.reals);
}

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, Numbers x, Numbers weight,
                           const real *bias, Numbers y)
{
    multiply(linear_product(LINEAR_Y, rows, in, out, false), x, weight, bias, y);
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers weight,
                                  Numbers dx, bool accumulate)
{
    multiply(linear_product(LINEAR_DX, rows, in, out, accumulate), dy, weight, NULL, dx);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers x,
                                   real *dweight, bool accumulate)
{
    multiply(linear_product(LINEAR_DWEIGHT, rows, in, out, accumulate), dy, x, NULL,
             in_full(dweight));
}

/** Adds the column sums of dy to dbias, for columns begin..end-1, four rows at a time. */
KERNEL_HELPER void column_sums(bool in_16_bits, int64_t rows, int64_t out, int64_t begin,
                               int64_t end, Numbers dy, real *dbias)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4)
#pragma omp simd
        for (int64_t c = begin; c < end; c++)
            dbias[c] += (number_at(in_16_bits, dy, r * out + c) +
                         number_at(in_16_bits, dy, (r + 1) * out + c)) +
                        (number_at(in_16_bits, dy, (r + 2) * out + c) +
                         number_at(in_16_bits, dy, (r + 3) * out + c));
    for (; r < rows; r++)
#pragma omp simd
        for (int64_t c = begin; c < end; c++)
            dbias[c] += number_at(in_16_bits, dy, r * out + c);
}

KERNEL static void add_column_sums(int64_t rows, int64_t out, int64_t begin, int64_t end,
                                   Numbers dy, real *dbias)
{
    if (dy.halves)
        column_sums(true, rows, out, begin, end, dy, dbias);
    else if (dy.reals)
        column_sums(false, rows, out, begin, end, dy, dbias);
}

void kernel_linear_backward_bias(int64_t rows, int64_t out, Numbers dy, real *dbias)
{
    FOR_PARTS(rows * out, out, CACHE_LINE)
    add_column_sums(rows, out, begin, end, dy, dbias);
}
