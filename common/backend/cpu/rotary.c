/* Rotary positions. */
#include "backend/backend.h"
#include "backend/cpu/kernel.h"

enum { PAIRS_AT_ONCE = 128 }; /**< pairs whose angles are on the stack */

/** Rotates `count` pairs of one head: x[k], x[half + k]. */
KERNEL_HELPER void turn(bool in_16_bits, int64_t count, int64_t half, const real *cosine,
                        const real *sine, Numbers x, Numbers y)
{
#pragma omp simd
    for (int64_t k = 0; k < count; k++) {
        const real lower = number_at(in_16_bits, x, k), upper = number_at(in_16_bits, x, half + k);
        put_number(in_16_bits, y, k, lower * cosine[k] - upper * sine[k]);
        put_number(in_16_bits, y, half + k, upper * cosine[k] + lower * sine[k]);
    }
}

/** Rotates pairs first..first+count-1 of all heads at positions begin..end-1, pair k by
 *  speed[k - first] per position. */
KERNEL static void turn_part(const Rotary *rotary, int64_t begin, int64_t end, int64_t first,
                             int64_t count, const double *speed, Numbers x, Numbers y)
{
    const int64_t size = rotary->head_size, width = rotary->heads * size;
    real cosine[PAIRS_AT_ONCE], sine[PAIRS_AT_ONCE];
    for (int64_t s = begin; s < end; s++) {
        for (int64_t k = 0; k < count; k++) {
            const double angle = (double)(rotary->first + s) * speed[k];
            cosine[k] = (real)cos(angle);
            sine[k] = (real)sin(angle);
        }
        for (int64_t b = 0; b < rotary->batch; b++)
            for (int64_t a = 0; a < rotary->heads; a++) {
                const int64_t at = (b * rotary->positions + s) * width + a * size + first;
                if (x.halves && y.halves)
                    turn(true, count, size / 2, cosine, sine, numbers_from(x, at),
                         numbers_from(y, at));
                else if (x.reals && y.reals)
                    turn(false, count, size / 2, cosine, sine, numbers_from(x, at),
                         numbers_from(y, at));
            }
    }
}

void kernel_rotary(const Rotary *rotary, bool back, Numbers x, Numbers y)
{
    const int64_t half = rotary->head_size / 2, positions = rotary->positions;
    const int64_t work = rotary->batch * positions * rotary->heads * rotary->head_size;
    for (int64_t first = 0; first < half; first += PAIRS_AT_ONCE) {
        const int64_t count = half - first < PAIRS_AT_ONCE ? half - first : PAIRS_AT_ONCE;
        double speed[PAIRS_AT_ONCE];
        for (int64_t k = 0; k < count; k++)
            speed[k] = (back ? -1 : 1) * rotary_speed(rotary, first + k);
        FOR_PARTS(work, positions, 1)
        turn_part(rotary, begin, end, first, count, speed, x, y);
    }
}
