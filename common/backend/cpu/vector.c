/* Element-wise operations, sums of squares, copies, table rows, and the optimisers' steps. */
#include <string.h>

#include "backend/adamw.h"
#include "backend/cpu/kernel.h"

KERNEL static void fill(int64_t count, real value, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        y[i] = value;
}

KERNEL static void add(int64_t count, const real *x, const real *y, real *z)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        z[i] = x[i] + y[i];
}

KERNEL static void add_halves(int64_t count, const real *x, const uint16_t *y, real *z)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        z[i] = x[i] + widened(y[i]);
}

KERNEL static void scale(int64_t count, real factor, real *x)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] *= factor;
}

void kernel_vector_fill(int64_t count, double value, real *y)
{
    FOR_PARTS(count, count, CACHE_LINE)
    fill(end - begin, (real)value, y + begin);
}

/* Sums one part. The sizes of the parts, and so the order of the whole sum, depend only on
 * `count`. */
KERNEL static double square_sum(int64_t count, const real *x)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

double kernel_vector_square_sum(int64_t count, const real *x)
{
    enum { PART = 1 << 16 };
    double sum = 0;
    for (int64_t begin = 0; begin < count; begin += PART)
        sum += square_sum(count - begin < PART ? count - begin : PART, x + begin);
    return sum;
}

void kernel_vector_copy(int64_t count, const real *x, real *y)
{
    FOR_PARTS(count, count, CACHE_LINE)
    memcpy(y + begin, x + begin, (size_t)(end - begin) * sizeof *y);
}

void kernel_vector_add(int64_t count, const real *x, Numbers y, real *z)
{
    FOR_PARTS(count, count, CACHE_LINE)
    {
        if (y.halves)
            add_halves(end - begin, x + begin, y.halves + begin, z + begin);
        else
            add(end - begin, x + begin, y.reals + begin, z + begin);
    }
}

void kernel_vector_accumulate(int64_t count, const real *x, real *y)
{
    kernel_vector_add(count, x, in_full(y), y);
}

void kernel_vector_scale(int64_t count, double factor, real *x)
{
    FOR_PARTS(count, count, CACHE_LINE)
    scale(end - begin, (real)factor, x + begin);
}

void kernel_copy_rows(int64_t rows, int64_t columns, const real *x, int64_t x_stride, real *y,
                      int64_t y_stride)
{
    FOR_PARTS(rows * columns, rows, 1)
    for (int64_t r = begin; r < end; r++)
        memcpy(y + r * y_stride, x + r * x_stride, (size_t)columns * sizeof *y);
}

/* ---- rows of a table --------------------------------------------------------------------------------- */

void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, Numbers table,
                           Numbers y)
{
    const int threads = threads_for(count * columns);
    const size_t bytes = (size_t)columns * (y.halves ? sizeof *y.halves : sizeof *y.reals);
    char *to = y.halves ? (char *)y.halves : (char *)y.reals;
    const char *from = table.halves ? (char *)table.halves : (char *)table.reals;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] == NO_ID)
            memset(to + (size_t)i * bytes, 0, bytes);
        else
            memcpy(to + (size_t)i * bytes, from + (size_t)ids[i] * bytes, bytes);
    }
}

/** Columns begin..end-1: threads share columns, so each table row is summed in order. */
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

/** Are some rows zero? Looks at a sample of the rows. The last row is in the sample, because
 *  padding is at the end of a text. */
static bool some_are_zero(int64_t rows, int64_t columns, Numbers x)
{
    enum { LOOKS = 32 };
    for (int64_t i = 1; i <= LOOKS && rows > 0; i++)
        if (is_zero(columns, x, (i * rows + LOOKS - 1) / LOOKS * columns - columns))
            return true;
    return false;
}

int64_t kernel_rows_in_use(int64_t rows, int64_t columns, Numbers x, int32_t *index)
{
    int64_t count = 0;
    if (!some_are_zero(rows, columns, x))
        return rows;
    for (int64_t r = 0; r < rows; r++)
        if (!is_zero(columns, x, r * columns))
            index[count++] = (int32_t)r;
    /* Skipping rows costs copies of the other rows and of the result. */
    return 4 * count < 3 * rows ? count : rows;
}

/* ---- optimisers -------------------------------------------------------------------------------------- */

KERNEL static void sgd_part(int64_t count, real *w, const real *g, real rate, real weight_decay)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        w[i] -= rate * (g[i] + weight_decay * w[i]);
}

void kernel_sgd_step(int64_t count, real *w, const real *g, double rate, double weight_decay)
{
    FOR_PARTS(count, count, CACHE_LINE)
    sgd_part(end - begin, w + begin, g + begin, (real)rate, (real)weight_decay);
}

KERNEL_HELPER void adamw_block(int64_t count, real *w, const real *g, real *m, real *v,
                               AdamWFactors f)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        /* Reads everything before writing: a store delays loads at a distance that is a multiple of
         * 4 KiB. */
        const real w_i = w[i], g_i = g[i];
        const real m_i = f.beta1 * m[i] + f.rest1 * g_i;
        const real v_i = f.beta2 * v[i] + f.rest2 * g_i * g_i;
        m[i] = m_i;
        v[i] = v_i;
        w[i] = f.kept * w_i - f.rate * m_i / (sqrtf(v_i) * f.root + f.epsilon);
    }
}

/* NaN counts as nonzero. */
KERNEL_HELPER bool all_are_zero(int64_t count, const real *g)
{
    int others = 0;
#pragma omp simd reduction(+ : others)
    for (int64_t i = 0; i < count; i++)
        others += !(g[i] == 0);
    return others == 0;
}

/** The step where m and v are zero and stay zero: m̂ / (√v̂ + epsilon) is zero. */
KERNEL_HELPER void only_decay(int64_t count, real *w, real kept)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        w[i] *= kept;
}

KERNEL static void adamw_part(int64_t count, real *w, const real *g, real *m, real *v,
                              const AdamWFactors *factors, uint8_t *seen)
{
    const AdamWFactors f = *factors;
    int64_t begin = 0, end;
    for (; begin < count; begin = end) {
        /* Takes as many equal blocks as possible, because starting a loop is expensive. */
        bool skip = false;
        for (end = begin; end < count; end += ADAMW_BLOCK) {
            const int64_t size = count - end < ADAMW_BLOCK ? count - end : ADAMW_BLOCK;
            const bool unseen = seen && !seen[end / ADAMW_BLOCK] && all_are_zero(size, g + end);
            if (end > begin && unseen != skip)
                break;
            skip = unseen;
            if (seen && !unseen)
                seen[end / ADAMW_BLOCK] = 1;
        }
        end = end < count ? end : count;
        if (skip)
            only_decay(end - begin, w + begin, f.kept);
        else
            adamw_block(end - begin, w + begin, g + begin, m + begin, v + begin, f);
    }
}

void kernel_adamw_step(int64_t count, real *w, const real *g, real *m, real *v, const AdamW *adamw)
{
    const AdamWFactors factors = adamw_factors(adamw);
    FOR_PARTS(count, count, ADAMW_BLOCK)
    adamw_part(end - begin, w + begin, g + begin, m + begin, v + begin, &factors,
               adamw->seen ? adamw->seen + begin / ADAMW_BLOCK : NULL);
}
