#include "backend/adamw.h"
#include "backend/cuda/device.cuh"

__global__ static void sgd(int64_t count, float *w, const float *g, float rate, float weight_decay)
{
    FOR_EACH(i, count) w[i] -= rate * (g[i] + weight_decay * w[i]);
}

void kernel_sgd_step(int64_t count, real *w, const real *g, double rate, double weight_decay)
{
    launch_for("sgd_step", count, sgd, count, w, g, (float)rate, (float)weight_decay);
}

__global__ static void adamw_step(int64_t count, float *w, const float *g, float *m, float *v,
                                  const uint8_t *seen, AdamWFactors f)
{
    FOR_EACH(i, count)
    {
        if (seen && !seen[i / ADAMW_BLOCK]) { /* m and v are zeros, and stay so */
            w[i] *= f.kept;
            continue;
        }
        const float m_i = f.beta1 * m[i] + f.rest1 * g[i];
        const float v_i = f.beta2 * v[i] + f.rest2 * g[i] * g[i];
        m[i] = m_i;
        v[i] = v_i;
        w[i] = f.kept * w[i] - f.rate * m_i / (sqrtf(v_i) * f.root + f.epsilon);
    }
}

__global__ static void mark_seen(int64_t count, const float *g, uint8_t *seen)
{
    FOR_EACH(i, count)
    {
        if (!(g[i] == 0))
            seen[i / ADAMW_BLOCK] = 1; /* whoever writes it writes the same */
    }
}

void kernel_adamw_step(int64_t count, real *w, const real *g, real *m, real *v, const AdamW *adamw)
{
    if (adamw->seen)
        launch_for("adamw_step", count, mark_seen, count, g, adamw->seen);
    launch_for("adamw_step", count, adamw_step, count, w, g, m, v, adamw->seen,
               adamw_factors(adamw));
}
