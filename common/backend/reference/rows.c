/* Norms and cross entropy, row by row, by definition. */
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

/* ---- layer norm and RMS norm ------------------------------------------------------------------------- */

static real mean_of(Order order, const real *x)
{
    real sum = 0;
    for (int64_t n = 0, c = order.first; n < order.count; n++, c = order_next(order, c))
        sum = rounded(sum + x[c]);
    return rounded(sum / (real)order.count);
}

/** 1 / sqrt(mean of (x - mean)² + epsilon) */
static real rstd_of(Order order, const real *x, real mean, double epsilon)
{
    real squares = 0;
    for (int64_t n = 0, c = order.first; n < order.count; n++, c = order_next(order, c)) {
        real centred = rounded(x[c] - mean);
        squares = plus_product(order, squares, centred, centred);
    }
    real variance = rounded(squares / (real)order.count);
    return rounded(1 / rounded(sqrt(rounded(variance + rounded(epsilon)))));
}

/** (x - mean) rstd */
static real normed_of(real x, real mean, real rstd)
{
    return rounded(rounded(x - mean) * rstd);
}

void kernel_layer_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                               const real *bias, double epsilon, Numbers y, real *mean, real *rstd)
{
    const Order order = reference_order(columns);
    for (int64_t r = 0; r < rows; r++, x += columns) {
        mean[r] = mean_of(order, x);
        rstd[r] = rstd_of(order, x, mean[r], epsilon);
        for (int64_t c = 0; c < columns; c++)
            reference_put(
                y, r * columns + c,
                rounded(rounded(normed_of(x[c], mean[r], rstd[r]) * weight[c]) + bias[c]));
    }
}

void kernel_rms_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                             double epsilon, Numbers y, real *rstd)
{
    const Order order = reference_order(columns);
    for (int64_t r = 0; r < rows; r++, x += columns) {
        rstd[r] = rstd_of(order, x, 0, epsilon);
        for (int64_t c = 0; c < columns; c++)
            reference_put(y, r * columns + c, rounded(normed_of(x[c], 0, rstd[r]) * weight[c]));
    }
}

/** One row of dx. With n = (x - mean) rstd and g = dy weight:
 *  dx = rstd (g - mean(g) - n mean(g n)); without `centred` (RMS norm), mean and mean(g) are 0. */
static void row_backward(Order order, bool centred, const real *dy, const real *x,
                         const real *weight, real mean, real rstd, real *dx, bool accumulate)
{
    const real columns = (real)order.count;
    real g_sum = 0, gn_sum = 0;
    for (int64_t n = 0, c = order.first; n < order.count; n++, c = order_next(order, c)) {
        real g = rounded(dy[c] * weight[c]);
        g_sum = rounded(g_sum + g);
        gn_sum = plus_product(order, gn_sum, g, normed_of(x[c], mean, rstd));
    }
    const real g_mean = centred ? rounded(g_sum / columns) : 0, gn_mean = rounded(gn_sum / columns);
    for (int64_t c = 0; c < order.count; c++) {
        real normed = normed_of(x[c], mean, rstd), g = rounded(dy[c] * weight[c]);
        real d = rounded(rstd * rounded(rounded(g - g_mean) - rounded(normed * gn_mean)));
        dx[c] = accumulate ? rounded(dx[c] + d) : d;
    }
}

void kernel_layer_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                                const real *weight, const real *mean, const real *rstd, real *dx,
                                bool accumulate, real *dweight, real *dbias)
{
    const Order by_column = reference_order(columns), by_row = reference_order(rows);
    for (int64_t n = 0, r = by_row.first; n < rows; n++, r = order_next(by_row, r))
        for (int64_t c = 0; c < columns; c++) {
            real normed = normed_of(x[r * columns + c], mean[r], rstd[r]);
            dweight[c] = plus_product(by_row, dweight[c], dy[r * columns + c], normed);
            dbias[c] = rounded(dbias[c] + dy[r * columns + c]);
        }
    for (int64_t r = 0; r < rows; r++) /* last, because dx may overwrite dy */
        row_backward(by_column, true, dy + r * columns, x + r * columns, weight, mean[r], rstd[r],
                     dx + r * columns, accumulate);
}

void kernel_rms_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                              const real *weight, const real *rstd, real *dx, bool accumulate,
                              real *dweight)
{
    const Order by_column = reference_order(columns), by_row = reference_order(rows);
    for (int64_t n = 0, r = by_row.first; n < rows; n++, r = order_next(by_row, r))
        for (int64_t c = 0; c < columns; c++)
            dweight[c] = plus_product(by_row, dweight[c], dy[r * columns + c],
                                      normed_of(x[r * columns + c], 0, rstd[r]));
    for (int64_t r = 0; r < rows; r++) /* last, because dx may overwrite dy */
        row_backward(by_column, false, dy + r * columns, x + r * columns, weight, 0, rstd[r],
                     dx + r * columns, accumulate);
}

/* ---- cross entropy ----------------------------------------------------------------------------------- */

void kernel_cross_entropy(int64_t rows, int64_t classes, const real *logits, const int32_t *labels,
                          real *losses, real *dlogits)
{
    const Order order = reference_order(classes);
    for (int64_t r = 0; r < rows; r++, logits += classes, dlogits += classes) {
        real highest = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++)
            if (logits[c] > highest)
                highest = logits[c];
        for (int64_t n = 0, c = order.first; n < classes; n++, c = order_next(order, c))
            sum = rounded(sum + reference_inexact(exp(rounded(logits[c] - highest))));
        losses[r] = rounded(reference_inexact(log(sum)) - rounded(logits[labels[r]] - highest));
        for (int64_t c = 0; c < classes; c++) {
            real probability = rounded(reference_inexact(exp(rounded(logits[c] - highest))) / sum);
            dlogits[c] = c == labels[r] ? rounded(probability - 1) : probability;
        }
    }
}
