/* Layer norm and cross entropy, row by row, by definition. */
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

/* ---- layer norm -------------------------------------------------------------------------------------- */

void kernel_layer_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                               const real *bias, double epsilon, real *y, real *mean, real *rstd)
{
    const Order order = reference_order(columns);
    for (int64_t r = 0; r < rows; r++, x += columns, y += columns) {
        real sum = 0, squares = 0;
        for (int64_t n = 0, c = order.first; n < columns; n++, c = order_next(order, c))
            sum = rounded(sum + x[c]);
        mean[r] = rounded(sum / (real)columns);
        for (int64_t n = 0, c = order.first; n < columns; n++, c = order_next(order, c)) {
            real centred = rounded(x[c] - mean[r]);
            squares = plus_product(order, squares, centred, centred);
        }
        real variance = rounded(squares / (real)columns);
        rstd[r] = rounded(1 / rounded(sqrt(rounded(variance + rounded(epsilon)))));
        for (int64_t c = 0; c < columns; c++) {
            real normed = rounded(rounded(x[c] - mean[r]) * rstd[r]);
            y[c] = rounded(rounded(normed * weight[c]) + bias[c]);
        }
    }
}

/** One row of dx. With n = (x - mean) rstd and g = dy weight:
 *  dx = rstd (g - mean(g) - n mean(g n)). */
static void row_backward(Order order, const real *dy, const real *x, const real *weight, real mean,
                         real rstd, real *dx, bool accumulate)
{
    const real columns = (real)order.count;
    real g_sum = 0, gn_sum = 0;
    for (int64_t n = 0, c = order.first; n < order.count; n++, c = order_next(order, c)) {
        real normed = rounded(rounded(x[c] - mean) * rstd);
        real g = rounded(dy[c] * weight[c]);
        g_sum = rounded(g_sum + g);
        gn_sum = plus_product(order, gn_sum, g, normed);
    }
    const real g_mean = rounded(g_sum / columns), gn_mean = rounded(gn_sum / columns);
    for (int64_t c = 0; c < order.count; c++) {
        real normed = rounded(rounded(x[c] - mean) * rstd);
        real g = rounded(dy[c] * weight[c]);
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
            real normed = rounded(rounded(x[r * columns + c] - mean[r]) * rstd[r]);
            dweight[c] = plus_product(by_row, dweight[c], dy[r * columns + c], normed);
            dbias[c] = rounded(dbias[c] + dy[r * columns + c]);
        }
    for (int64_t r = 0; r < rows; r++) /* last, because dx may overwrite dy */
        row_backward(by_column, dy + r * columns, x + r * columns, weight, mean[r], rstd[r],
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
