/* A step of SGD and of AdamW. */
#include "backend/adamw.h"
#include "backend/cpu/kernel.h"

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
        /* All is read before anything is written: stores hold up loads a multiple of 4 KiB away from them. */
        const real w_i = w[i], g_i = g[i];
        const real m_i = f.beta1 * m[i] + f.rest1 * g_i;
        const real v_i = f.beta2 * v[i] + f.rest2 * g_i * g_i;
        m[i] = m_i;
        v[i] = v_i;
        w[i] = f.kept * w_i - f.rate * m_i / (sqrtf(v_i) * f.root + f.epsilon);
    }
}

/* A number that is no number is not zero either. */
KERNEL_HELPER bool all_are_zero(int64_t count, const real *g)
{
    int others = 0;
#pragma omp simd reduction(+ : others)
    for (int64_t i = 0; i < count; i++)
        others += !(g[i] == 0);
    return others == 0;
}

/** What a step does where m and v are zero and stay so: m̂ / (√v̂ + epsilon) is zero. */
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
        /* As many blocks as are alike: a loop is worth its beginning then. */
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
