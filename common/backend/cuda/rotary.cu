/* Rotary positions. */
#include "backend/cuda/device.cuh"

/* A thread turns one pair of all heads at one position of one sample, so it computes a single
 * angle. In double precision, many GPUs are slow. */
__global__ static void turn(Rotary rotary, bool back, const float *x, float *y)
{
    const int64_t half = rotary.head_size / 2;
    FOR_EACH(i, rotary.batch * rotary.positions * half)
    {
        const int64_t row = i / half, k = i % half;
        const double angle =
            (double)(rotary.first + row % rotary.positions) * rotary_speed(&rotary, k);
        const float cosine = (float)cos(angle), sine = (float)(back ? -sin(angle) : sin(angle));
        int64_t at = row * rotary.heads * rotary.head_size + k;
        for (int64_t a = 0; a < rotary.heads; a++, at += rotary.head_size) {
            const float lower = x[at], upper = x[at + half];
            y[at] = lower * cosine - upper * sine;
            y[at + half] = upper * cosine + lower * sine;
        }
    }
}

void kernel_rotary(const Rotary *rotary, bool back, const real *x, real *y)
{
    launch_for("rotary", rotary->batch * rotary->positions * (rotary->head_size / 2), turn, *rotary,
               back, x, y);
}
