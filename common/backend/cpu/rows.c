/* Layer norm and cross entropy, which work row by row. */
#include <math.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/vector_math.h"

/* ---- layer norm -------------------------------------------------------------------------------------- */

KERNEL static void rows_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                                const real *bias, real epsilon, real *y, real *mean, real *rstd)
{
    for (int64_t r = 0; r < rows; r++, x += columns, y += columns) {
        real sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < columns; c++)
            sum += x[c];
        const real row_mean = sum / (real)columns;
#pragma omp simd reduction(+ : squares)
        for (int64_t c = 0; c < columns; c++)
            squares += (x[c] - row_mean) * (x[c] - row_mean);
        const real row_rstd = 1 / sqrtf(squares / (real)columns + epsilon);
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            y[c] = (x[c] - row_mean) * row_rstd * weight[c] + bias[c];
        mean[r] = row_mean;
        rstd[r] = row_rstd;
    }
}

void kernel_layer_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                               const real *bias, double epsilon, real *y, real *mean, real *rstd)
{
    FOR_PARTS(rows * columns, rows, 1)
    rows_forward(end - begin, columns, x + begin * columns, weight, bias, (real)epsilon,
                 y + begin * columns, mean + begin, rstd + begin);
}

/** With n = (x - mean) rstd and g = dy weight:
 *  dx = rstd (g - mean(g) - n mean(g n)), dweight += dy n, dbias += dy. */
KERNEL static void rows_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                                 const real *weight, const real *mean, const real *rstd, real *dx,
                                 bool accumulate, real *dweight, real *dbias)
{
    for (int64_t r = 0; r < rows; r++, dy += columns, x += columns, dx += columns) {
        if (is_zero(columns, dy)) {
            if (!accumulate)
                memset(dx, 0, (size_t)columns * sizeof *dx);
            continue;
        }
        const real row_mean = mean[r], row_rstd = rstd[r];
        real g_sum = 0, gn_sum = 0;
#pragma omp simd reduction(+ : g_sum, gn_sum)
        for (int64_t c = 0; c < columns; c++) {
            const real normed = (x[c] - row_mean) * row_rstd;
            g_sum += dy[c] * weight[c];
            gn_sum += dy[c] * weight[c] * normed;
            dweight[c] += dy[c] * normed;
            dbias[c] += dy[c];
        }
        const real g_mean = g_sum / (real)columns, gn_mean = gn_sum / (real)columns;
        if (accumulate) {
#pragma omp simd
            for (int64_t c = 0; c < columns; c++)
                dx[c] += row_rstd *
                         (dy[c] * weight[c] - g_mean - (x[c] - row_mean) * row_rstd * gn_mean);
        } else {
#pragma omp simd
            for (int64_t c = 0; c < columns; c++)
                dx[c] = row_rstd *
                        (dy[c] * weight[c] - g_mean - (x[c] - row_mean) * row_rstd * gn_mean);
        }
    }
}

enum { COLUMNS_ON_THE_STACK = 4096 }; /**< one thread sums wider rows */

void kernel_layer_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                                const real *weight, const real *mean, const real *rstd, real *dx,
                                bool accumulate, real *dweight, real *dbias)
{
    const int threads = columns <= COLUMNS_ON_THE_STACK ? threads_for(rows * columns) : 1;
    if (threads == 1) {
        rows_backward(rows, columns, dy, x, weight, mean, rstd, dx, accumulate, dweight, dbias);
        return;
    }
#pragma omp parallel for num_threads(threads) ordered schedule(static, 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(rows, 1, t, threads),
                      end = part_begin(rows, 1, t + 1, threads);
        real sums[2][COLUMNS_ON_THE_STACK];
        kernel_vector_fill(columns, 0, sums[0]);
        kernel_vector_fill(columns, 0, sums[1]);
        rows_backward(end - begin, columns, dy + begin * columns, x + begin * columns, weight,
                      mean + begin, rstd + begin, dx + begin * columns, accumulate, sums[0],
                      sums[1]);
#pragma omp ordered
        {
            kernel_vector_accumulate(columns, sums[0], dweight);
            kernel_vector_accumulate(columns, sums[1], dbias);
        }
    }
}

/* ---- cross entropy ----------------------------------------------------------------------------------- */

KERNEL static void rows_of_cross_entropy(int64_t rows, int64_t classes, const real *logits,
                                         const int32_t *labels, real *losses, real *dlogits)
{
    for (int64_t r = 0; r < rows; r++, logits += classes, dlogits += classes) {
        const real highest = highest_of(classes, logits);
        real sum = 0;
        losses[r] = highest - logits[labels[r]]; /* before dlogits, which may overwrite logits */
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < classes; c++) {
            dlogits[c] = exp_nonpositive(logits[c] - highest);
            sum += dlogits[c];
        }
        losses[r] += logf(sum);
        const real inverse = 1 / sum;
#pragma omp simd
        for (int64_t c = 0; c < classes; c++)
            dlogits[c] *= inverse;
        dlogits[labels[r]] -= 1;
    }
}

void kernel_cross_entropy(int64_t rows, int64_t classes, const real *logits, const int32_t *labels,
                          real *losses, real *dlogits)
{
    FOR_PARTS(rows * classes, rows, 1)
    rows_of_cross_entropy(end - begin, classes, logits + begin * classes, labels + begin,
                          losses + begin, dlogits + begin * classes);
}
