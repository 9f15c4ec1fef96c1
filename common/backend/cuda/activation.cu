/* GELU, SwiGLU and dropout; GELU and dropout in one pass if they follow each other. */
#include "backend/cuda/device.cuh"
#include "backend/cuda/tensor_cores.cuh"

/* ---- GELU ------------------------------------------------------------------------------------------------ */

/* The parts of GELU and its slope at a = |x|. The tail stays exact for small values, where 1 +
 * erf(x/√2) would cancel. An |x| above 13 counts as 13, because Φ(-13) is only 6e-39. This also
 * avoids ∞ · 0. */
typedef struct Normal {
    float a, tail, density; /* a, Φ(-a), φ(a) */
} Normal;

/* The logistic function's tail σ(-a) and density σ(a) σ(-a), for a that is at least 0. */
typedef struct Logistic {
    float tail, density;
} Logistic;

__device__ static Logistic logistic_at(float a)
{
    const float e = expf(-a), inverse = 1 / (1 + e);
    return {e * inverse, e * inverse * inverse};
}

/* BY_TANH: Φ(-a) is σ(-2u) with 2u = √(8/π) (a + 0.044715 a³). */
template <bool BY_TANH> __device__ static Normal normal_at(float x)
{
    const float far = 13, a = far < fabsf(x) ? far : fabsf(x);
    if (BY_TANH) {
        const Logistic logistic = logistic_at(1.5957691216057308f * (a + 0.044715f * a * a * a));
        return {a, logistic.tail, logistic.density * 1.5957691216057308f * (1 + 0.134145f * a * a)};
    }
    return {a, 0.5f * erfcf(a * 0.70710678118654752f), 0.39894228040143268f * expf(-0.5f * a * a)};
}

/* x Φ(x) = max(x, 0) - a Φ(-a) */
template <bool BY_TANH = false> __device__ static float gelu(float x)
{
    const Normal normal = normal_at<BY_TANH>(x);
    return (0 > x ? 0 : x) - normal.a * normal.tail;
}

/* Φ(x) + x φ(x): t = Φ(-a) - a φ(a) for negative x, 1 - t for the others. */
template <bool BY_TANH = false> __device__ static float gelu_slope(float x)
{
    const Normal normal = normal_at<BY_TANH>(x);
    const float t = normal.tail - normal.a * normal.density;
    return x < 0 ? t : 1 - t;
}

template <bool BY_TANH>
__global__ static void gelu_forward(int64_t count, DeviceNumbers x, DeviceNumbers y)
{
    FOR_EACH(i, count) put_number(y, i, gelu<BY_TANH>(number_at(x, i)));
}

template <bool BY_TANH>
__global__ static void gelu_backward(int64_t count, DeviceNumbers dy, DeviceNumbers x,
                                     DeviceNumbers dx)
{
    FOR_EACH(i, count)
    put_number(dx, i, number_at(dy, i) * gelu_slope<BY_TANH>(number_at(x, i)));
}

void kernel_gelu_forward(int64_t count, Numbers x, Numbers y)
{
    launch_for("gelu_forward", count, gelu_forward<false>, count, on_device(x), on_device(y));
}

void kernel_gelu_backward(int64_t count, Numbers dy, Numbers x, Numbers dx)
{
    launch_for("gelu_backward", count, gelu_backward<false>, count, on_device(dy), on_device(x),
               on_device(dx));
}

void kernel_gelu_tanh_forward(int64_t count, Numbers x, Numbers y)
{
    launch_for("gelu_tanh_forward", count, gelu_forward<true>, count, on_device(x), on_device(y));
}

void kernel_gelu_tanh_backward(int64_t count, Numbers dy, Numbers x, Numbers dx)
{
    launch_for("gelu_tanh_backward", count, gelu_backward<true>, count, on_device(dy), on_device(x),
               on_device(dx));
}

/* ---- SwiGLU ---------------------------------------------------------------------------------------------- */

/* x σ(x), and its slope σ(x) (1 + x σ(-x)). */
typedef struct Silu {
    float value, slope;
} Silu;

__device__ static Silu silu_at(float x)
{
    const float tail = logistic_at(fabsf(x)).tail;
    const float open = x < 0 ? tail : 1 - tail, shut = x < 0 ? 1 - tail : tail;
    return {x * open, open * (1 + x * shut)};
}

__global__ static void swiglu_forward(int64_t count, DeviceNumbers gate, DeviceNumbers up,
                                      DeviceNumbers y)
{
    FOR_EACH(i, count) put_number(y, i, silu_at(number_at(gate, i)).value * number_at(up, i));
}

__global__ static void swiglu_backward(int64_t count, DeviceNumbers dy, DeviceNumbers gate,
                                       DeviceNumbers up, DeviceNumbers dgate, DeviceNumbers dup)
{
    FOR_EACH(i, count)
    {
        const Silu silu = silu_at(number_at(gate, i));
        const float d = number_at(dy, i);
        put_number(dgate, i, d * number_at(up, i) * silu.slope);
        put_number(dup, i, d * silu.value);
    }
}

void kernel_swiglu_forward(int64_t count, Numbers gate, Numbers up, Numbers y)
{
    launch_for("swiglu_forward", count, swiglu_forward, count, on_device(gate), on_device(up),
               on_device(y));
}

void kernel_swiglu_backward(int64_t count, Numbers dy, Numbers gate, Numbers up, Numbers dgate,
                            Numbers dup)
{
    launch_for("swiglu_backward", count, swiglu_backward, count, on_device(dy), on_device(gate),
               on_device(up), on_device(dgate), on_device(dup));
}

/* ---- dropout --------------------------------------------------------------------------------------------- */

/* A launch passes the samples as an argument, so nothing has to be copied to the device first. */
enum { SAMPLES = 256 };
typedef struct Samples {
    int64_t of[SAMPLES];
} Samples;

/* Each thread draws the bits of one word; philox gives numbers for four neighbouring columns of the
 * full tensor. */
__global__ static void dropout_draw(int64_t rows, int64_t columns, PhiloxKey key,
                                    uint32_t threshold, Samples samples, int64_t positions,
                                    int64_t position_begin, int64_t column_begin, uint32_t *kept)
{
    const int64_t words = dropout_words(columns);
    FOR_EACH(i, rows * words)
    {
        const int64_t row = i / words, first = i % words * DROPOUT_BITS;
        const int64_t end = first + DROPOUT_BITS < columns ? first + DROPOUT_BITS : columns;
        const uint64_t sample = (uint64_t)samples.of[row / positions];
        uint32_t bits = 0;
        for (int64_t block = (column_begin + first) / 4; block * 4 < column_begin + end; block++) {
            const Philox4 four =
                philox(key, (uint32_t)sample, (uint32_t)(sample >> 32),
                       (uint32_t)(position_begin + row % positions), (uint32_t)block);
            for (int k = 0; k < 4; k++) {
                const int64_t bit = block * 4 + k - column_begin - first;
                if (bit >= 0 && first + bit < end && four.word[k] >> 8 >= threshold)
                    bits |= UINT32_C(1) << bit;
            }
        }
        kept[i] = bits;
    }
}

__device__ static bool is_kept(int64_t columns, const uint32_t *kept, int64_t i)
{
    const int64_t column = i % columns;
    return kept[i / columns * dropout_words(columns) + column / DROPOUT_BITS] >>
               column % DROPOUT_BITS &
           1;
}

template <DropoutOperation OPERATION>
__global__ static void dropout(int64_t rows, int64_t columns, float factor, const uint32_t *kept,
                               DeviceNumbers dy, DeviceNumbers x, DeviceNumbers y)
{
    FOR_EACH(i, rows * columns)
    {
        float scaled = 0;
        if (is_kept(columns, kept, i))
            scaled = (OPERATION == DROPOUT        ? number_at(x, i)
                      : OPERATION == GELU_DROPOUT ? gelu(number_at(x, i))
                                                  : number_at(dy, i)) *
                     factor;
        put_number(y, i,
                   OPERATION == GELU_DROPOUT_BACKWARD ? gelu_slope(number_at(x, i)) * scaled
                                                      : scaled);
    }
}

void kernel_dropout_draw(int64_t rows, int64_t columns, const DropoutMask *mask, uint32_t *kept)
{
    const int64_t most = SAMPLES * mask->positions;
    const uint32_t threshold = dropout_threshold(mask->probability);
    for (int64_t first = 0; first < rows; first += most) {
        const int64_t count = rows - first < most ? rows - first : most;
        Samples samples = {};
        for (int64_t s = 0; s * mask->positions < count; s++)
            samples.of[s] = mask->samples[first / mask->positions + s];
        launch_for("dropout_draw", count * dropout_words(columns), dropout_draw, count, columns,
                   mask->key, threshold, samples, mask->positions, mask->position_begin,
                   mask->column_begin, kept + first * dropout_words(columns));
    }
}

void kernel_dropout(DropoutOperation operation, int64_t rows, int64_t columns, double probability,
                    const uint32_t *kept, Numbers dy, Numbers x, Numbers y)
{
    const float factor = (float)(1 / (1 - probability));
    launch_for("dropout", rows * columns,
               operation == DROPOUT        ? dropout<DROPOUT>
               : operation == GELU_DROPOUT ? dropout<GELU_DROPOUT>
                                           : dropout<GELU_DROPOUT_BACKWARD>,
               rows, columns, factor, kept, on_device(dy), on_device(x), on_device(y));
}
