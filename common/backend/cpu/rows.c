/* Norms and cross entropy, which work row by row. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/products.h"
#include "backend/cpu/vector_math.h"

/* ---- layer norm and RMS norm ------------------------------------------------------------------------- */

/** Without `centred` (RMS norm), the mean is 0, and there is no bias. Results in 16 bits are rounded
 *  a block at a time. */
KERNEL_HELPER void norm_rows(bool centred, int64_t rows, int64_t columns, const real *x,
                             const real *weight, const real *bias, real epsilon, Numbers y,
                             real *mean, real *rstd)
{
    enum { BLOCK = 256 };
    const int64_t most = y.halves ? BLOCK : columns;
    for (int64_t r = 0; r < rows; r++, x += columns, y = numbers_from(y, columns)) {
        real sum = 0, squares = 0;
        if (centred) {
#pragma omp simd reduction(+ : sum)
            for (int64_t c = 0; c < columns; c++)
                sum += x[c];
        }
        const real row_mean = sum / (real)columns;
#pragma omp simd reduction(+ : squares)
        for (int64_t c = 0; c < columns; c++)
            squares += (x[c] - row_mean) * (x[c] - row_mean);
        const real row_rstd =
            squares <= FLT_MAX ? 1 / sqrtf(squares / (real)columns + epsilon) : NAN;
        for (int64_t begin = 0; begin < columns; begin += most) {
            const int64_t count = columns - begin < most ? columns - begin : most;
            const real *from = x + begin, *factor = weight + begin;
            real block[BLOCK], *to = y.halves ? block : y.reals + begin;
#pragma omp simd
            for (int64_t c = 0; c < count; c++)
                to[c] =
                    (from[c] - row_mean) * row_rstd * factor[c] + (centred ? bias[begin + c] : 0);
            if (y.halves)
                bf16_round(count, block, y.halves + begin);
        }
        if (centred)
            mean[r] = row_mean;
        rstd[r] = row_rstd;
    }
}

KERNEL static void layer_norm_rows(int64_t rows, int64_t columns, const real *x, const real *weight,
                                   const real *bias, real epsilon, Numbers y, real *mean,
                                   real *rstd)
{
    norm_rows(true, rows, columns, x, weight, bias, epsilon, y, mean, rstd);
}

KERNEL static void rms_norm_rows(int64_t rows, int64_t columns, const real *x, const real *weight,
                                 real epsilon, Numbers y, real *rstd)
{
    norm_rows(false, rows, columns, x, weight, NULL, epsilon, y, NULL, rstd);
}

void kernel_layer_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                               const real *bias, double epsilon, Numbers y, real *mean, real *rstd)
{
    FOR_PARTS(rows * columns, rows, 1)
    layer_norm_rows(end - begin, columns, x + begin * columns, weight, bias, (real)epsilon,
                    numbers_from(y, begin * columns), mean + begin, rstd + begin);
}

void kernel_rms_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                             double epsilon, Numbers y, real *rstd)
{
    FOR_PARTS(rows * columns, rows, 1)
    rms_norm_rows(end - begin, columns, x + begin * columns, weight, (real)epsilon,
                  numbers_from(y, begin * columns), rstd + begin);
}

/** The arguments of both backward passes. For RMS norm, mean and dbias are NULL. */
typedef struct NormBackward {
    int64_t columns;
    const real *dy, *x, *weight, *mean, *rstd;
    real *dx;
    bool accumulate;
    real *dweight, *dbias;
} NormBackward;

/** Rows begin..end-1. With n = (x - mean) rstd and g = dy weight:
 *  dx = rstd (g - mean(g) - n mean(g n)), dweight += dy n, dbias += dy. Without `centred` (RMS
 *  norm), mean and mean(g) are 0. */
KERNEL_HELPER void norm_backward(bool centred, const NormBackward *of, int64_t begin, int64_t end,
                                 real *dweight, real *dbias)
{
    const int64_t columns = of->columns;
    const real *weight = of->weight;
    for (int64_t r = begin; r < end; r++) {
        const real *dy = of->dy + r * columns, *x = of->x + r * columns;
        real *dx = of->dx + r * columns;
        if (is_zero(columns, in_full(dy), 0)) {
            if (!of->accumulate)
                memset(dx, 0, (size_t)columns * sizeof *dx);
            continue;
        }
        const real row_mean = centred ? of->mean[r] : 0, row_rstd = of->rstd[r];
        real g_sum = 0, gn_sum = 0;
#pragma omp simd reduction(+ : g_sum, gn_sum)
        for (int64_t c = 0; c < columns; c++) {
            const real normed = (x[c] - row_mean) * row_rstd;
            gn_sum += dy[c] * weight[c] * normed;
            dweight[c] += dy[c] * normed;
            if (centred) {
                g_sum += dy[c] * weight[c];
                dbias[c] += dy[c];
            }
        }
        const real g_mean = g_sum / (real)columns, gn_mean = gn_sum / (real)columns;
        if (of->accumulate) {
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

KERNEL static void backward_part(const NormBackward *of, int64_t begin, int64_t end, real *dweight,
                                 real *dbias)
{
    if (of->mean)
        norm_backward(true, of, begin, end, dweight, dbias);
    else
        norm_backward(false, of, begin, end, dweight, NULL);
}

enum { COLUMNS_ON_THE_STACK = 4096 }; /**< one thread sums wider rows */

static void norm_backward_in_parts(const NormBackward *of, int64_t rows)
{
    const int64_t columns = of->columns;
    const int threads = columns <= COLUMNS_ON_THE_STACK ? threads_for(rows * columns) : 1;
    if (threads == 1) {
        backward_part(of, 0, rows, of->dweight, of->dbias);
        return;
    }
#pragma omp parallel for num_threads(threads) ordered schedule(static, 1)
    for (int t = 0; t < threads; t++) {
        real sums[2][COLUMNS_ON_THE_STACK];
        kernel_vector_fill(columns, 0, sums[0]);
        kernel_vector_fill(columns, 0, sums[1]);
        backward_part(of, part_begin(rows, 1, t, threads), part_begin(rows, 1, t + 1, threads),
                      sums[0], sums[1]);
#pragma omp ordered
        {
            kernel_vector_accumulate(columns, sums[0], of->dweight);
            if (of->dbias)
                kernel_vector_accumulate(columns, sums[1], of->dbias);
        }
    }
}

void kernel_layer_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                                const real *weight, const real *mean, const real *rstd, real *dx,
                                bool accumulate, real *dweight, real *dbias)
{
    norm_backward_in_parts(
        &(NormBackward){columns, dy, x, weight, mean, rstd, dx, accumulate, dweight, dbias}, rows);
}

void kernel_rms_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                              const real *weight, const real *rstd, real *dx, bool accumulate,
                              real *dweight)
{
    norm_backward_in_parts(
        &(NormBackward){columns, dy, x, weight, NULL, rstd, dx, accumulate, dweight, NULL}, rows);
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
