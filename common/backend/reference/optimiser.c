#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

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
