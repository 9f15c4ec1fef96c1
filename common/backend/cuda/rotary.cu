/* Rotary positions. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/tensor_cores.cuh"

/* A thread turns one pair of all heads at one position of one sample, so it computes a single
 * angle. In double precision, many GPUs are slow. */
__global__ static void turn(Rotary rotary, bool back, DeviceNumbers x, DeviceNumbers y)
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
            const float lower = number_at(x, at), upper = number_at(x, at + half);
            put_number(y, at, lower * cosine - upper * sine);
            put_number(y, at + half, upper * cosine + lower * sine);
        }
    }
}

void kernel_rotary(const Rotary *rotary, bool back, Numbers x, Numbers y)
{
    launch_for("rotary", rotary->batch * rotary->positions * (rotary->head_size / 2), turn, *rotary,
               back, on_device(x), on_device(y));
}
