/* Element-wise operations, table rows, and the optimisers' steps, by definition. */
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

void kernel_vector_fill(int64_t count, double value, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = rounded(value);
}

void kernel_vector_copy(int64_t count, const real *x, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i];
}

void kernel_vector_add(int64_t count, const real *x, Numbers y, real *z)
{
    for (int64_t i = 0; i < count; i++)
        z[i] = rounded(x[i] + reference_number(y, i));
}

void kernel_vector_accumulate(int64_t count, const real *x, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = rounded(y[i] + x[i]);
}

void kernel_vector_scale(int64_t count, double factor, real *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = rounded(x[i] * rounded(factor));
}

double kernel_vector_square_sum(int64_t count, const real *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sum;
}

void kernel_copy_rows(int64_t rows, int64_t columns, const real *x, int64_t x_stride, real *y,
                      int64_t y_stride)
{
    for (int64_t r = 0; r < rows; r++)
        kernel_vector_copy(columns, x + r * x_stride, y + r * y_stride);
}

/* ---- rows of a table --------------------------------------------------------------------------------- */

void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, Numbers table,
                           Numbers y)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < columns; c++)
            reference_put(y, i * columns + c,
                          ids[i] == NO_ID ? 0 : reference_number(table, ids[i] * columns + c));
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

int64_t kernel_rows_in_use(int64_t rows, int64_t columns, Numbers x, int32_t *index)
{
    return rows;
}

/* ---- optimisers -------------------------------------------------------------------------------------- */

void kernel_sgd_step(int64_t count, real *w, const real *g, double rate, double weight_decay)
{
    for (int64_t i = 0; i < count; i++) {
        real decayed = rounded(g[i] + rounded(rounded(weight_decay) * w[i]));
        w[i] = rounded(w[i] - rounded(rounded(rate) * decayed));
    }
}

void kernel_adamw_step(int64_t count, real *w, const real *g, real *m, real *v, const AdamW *adamw)
{
    const real beta1 = rounded(adamw->beta1), beta2 = rounded(adamw->beta2);
    const real rest1 = rounded(1 - adamw->beta1), rest2 = rounded(1 - adamw->beta2);
    const real correction1 = rounded(1 - pow(adamw->beta1, (double)adamw->step));
    const real correction2 = rounded(1 - pow(adamw->beta2, (double)adamw->step));
    const real kept = rounded(1 - adamw->rate * adamw->weight_decay);
    for (int64_t i = 0; i < count; i++) {
        m[i] = rounded(rounded(beta1 * m[i]) + rounded(rest1 * g[i]));
        v[i] = rounded(rounded(beta2 * v[i]) + rounded(rest2 * rounded(g[i] * g[i])));
        real m_hat = rounded(m[i] / correction1), v_hat = rounded(v[i] / correction2);
        real move = rounded(m_hat / rounded(rounded(sqrt(v_hat)) + rounded(adamw->epsilon)));
        w[i] = rounded(rounded(w[i] * kept) - rounded(rounded(adamw->rate) * move));
    }
}
