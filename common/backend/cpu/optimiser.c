#include <math.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"

KERNEL static void sgd_part(int64_t count, real *w, const real *g, real rate, real weight_decay)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        w[i] -= rate * (g[i] + weight_decay * w[i]);
}

void kernel_sgd_step(int64_t count, real *w, const real *g, double rate, double weight_decay)
{
    const int threads = threads_for(count);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(count, CACHE_LINE, t, threads);
        sgd_part(part_begin(count, CACHE_LINE, t + 1, threads) - begin, w + begin, g + begin, (real)rate,
                 (real)weight_decay);
    }
}

/** The numbers of an AdamW step, with the corrections of the means taken out of the loop. */
typedef struct AdamWFactors {
    real beta1, rest1; /**< rest1 = 1 - beta1, rounded once */
    real beta2, rest2;
    real kept; /**< 1 - rate · weight_decay */
    real rate; /**< rate / (1 - beta1^step) */
    real root; /**< 1 / √(1 - beta2^step) */
    real epsilon;
} AdamWFactors;

KERNEL static void adamw_part(int64_t count, real *w, const real *g, real *m, real *v,
                              const AdamWFactors *factors)
{
    const AdamWFactors f = *factors;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        /* All is read before anything is written: stores hold up loads a multiple of 4 KiB away from them. */
        const real w_i = w[i], g_i = g[i];
        const real m_i = f.beta1 * m[i] + f.rest1 * g_i;
        const real v_i = f.beta2 * v[i] + f.rest2 * g_i * g_i;
        m[i] = m_i;
        v[i] = v_i;
        w[i] = f.kept * w_i - f.rate * m_i / (sqrtf(v_i) * f.root + f.epsilon);
    }
}

void kernel_adamw_step(int64_t count, real *w, const real *g, real *m, real *v, const AdamW *adamw)
{
    const double correction1 = 1 - pow(adamw->beta1, (double)adamw->step);
    const double correction2 = 1 - pow(adamw->beta2, (double)adamw->step);
    const AdamWFactors factors = {
        .beta1 = (real)adamw->beta1,
        .rest1 = (real)(1 - adamw->beta1),
        .beta2 = (real)adamw->beta2,
        .rest2 = (real)(1 - adamw->beta2),
        .kept = (real)(1 - adamw->rate * adamw->weight_decay),
        .rate = (real)(adamw->rate / correction1),
        .root = (real)(1 / sqrt(correction2)),
        .epsilon = (real)adamw->epsilon,
    };
    const int threads = threads_for(count);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(count, CACHE_LINE, t, threads);
        adamw_part(part_begin(count, CACHE_LINE, t + 1, threads) - begin, w + begin, g + begin, m + begin,
                   v + begin, &factors);
    }
}
