/* Cross entropy of each row, and its gradient. */
#include <math.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/vector_math.h"

KERNEL static void rows_of_cross_entropy(int64_t rows, int64_t classes, const real *logits,
                                         const int32_t *labels, real *losses, real *dlogits)
{
    for (int64_t r = 0; r < rows; r++, logits += classes, dlogits += classes) {
        const real highest = highest_of(classes, logits);
        real sum = 0;
        losses[r] = highest - logits[labels[r]]; /* before dlogits, which may lie over logits */
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
