#include "backend/cuda/device.cuh"

/* A thread a row: classes are few. */
__global__ static void cross_entropy(int64_t rows, int64_t classes, const float *logits,
                                     const int32_t *labels, float *losses, float *dlogits)
{
    FOR_EACH(row, rows)
    {
        const float *z = logits + row * classes;
        float *dz = dlogits + row * classes, highest = z[0], sum = 0;
        for (int64_t c = 1; c < classes; c++)
            highest = higher(highest, z[c]);
        for (int64_t c = 0; c < classes; c++)
            sum += expf(z[c] - highest);
        losses[row] = logf(sum) - (z[labels[row]] - highest);
        for (int64_t c = 0; c < classes; c++)
            dz[c] = expf(z[c] - highest) / sum - (c == labels[row] ? 1.0f : 0.0f);
    }
}

void kernel_cross_entropy(int64_t rows, int64_t classes, const real *logits, const int32_t *labels,
                          real *losses, real *dlogits)
{
    launch_for("cross_entropy", rows, cross_entropy, rows, classes, logits, labels, losses,
               dlogits);
}
