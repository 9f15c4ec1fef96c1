/* GELU, SwiGLU, rotary positions and dropout, by definition. */
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

/** Φ(x), the cumulative distribution function of the standard normal distribution. */
static real normal_below(real x)
{
    real erf_x = reference_inexact(erf(rounded(x * rounded(M_SQRT1_2))));
    return rounded(rounded(1 + erf_x) / 2);
}

static real gelu(real x)
{
    return rounded(x * normal_below(x));
}

/** gelu'(x) = Φ(x) + x φ(x), with the density φ(x) = exp(-x²/2) / √(2π). */
static real gelu_slope(real x)
{
    real density =
        rounded(reference_inexact(exp(rounded(rounded(x * x) / -2))) * rounded(1 / sqrt(2 * M_PI)));
    return rounded(normal_below(x) + rounded(x * density));
}

void kernel_gelu_forward(int64_t count, Numbers x, Numbers y)
{
    for (int64_t i = 0; i < count; i++)
        reference_put(y, i, gelu(reference_number(x, i)));
}

void kernel_gelu_backward(int64_t count, Numbers dy, Numbers x, Numbers dx)
{
    for (int64_t i = 0; i < count; i++)
        reference_put(dx, i, rounded(reference_number(dy, i) * gelu_slope(reference_number(x, i))));
}

/* ---- the logistic function: GELU by tanh, SwiGLU -------------------------------------------------------- */

/** σ(x) = 1 / (1 + exp(-x)) */
static real logistic(real x)
{
    return rounded(1 / rounded(1 + reference_inexact(exp(-x))));
}

/** 2u of kernel_gelu_tanh_forward(); twice_u_slope() is its derivative. */
static real twice_u(real x)
{
    real cubic = rounded(rounded(0.044715) * rounded(rounded(x * x) * x));
    return rounded(rounded(2 * sqrt(2 / M_PI)) * rounded(x + cubic));
}
static real twice_u_slope(real x)
{
    real square = rounded(rounded(3 * 0.044715) * rounded(x * x));
    return rounded(rounded(2 * sqrt(2 / M_PI)) * rounded(1 + square));
}

void kernel_gelu_tanh_forward(int64_t count, Numbers x, Numbers y)
{
    for (int64_t i = 0; i < count; i++) {
        const real at = reference_number(x, i);
        reference_put(y, i, rounded(at * logistic(twice_u(at))));
    }
}

void kernel_gelu_tanh_backward(int64_t count, Numbers dy, Numbers x, Numbers dx)
{
    for (int64_t i = 0; i < count; i++) {
        const real at = reference_number(x, i);
        real u = twice_u(at), below = logistic(u), above = logistic(-u);
        real bell = rounded(rounded(below * above) * twice_u_slope(at));
        const real slope = rounded(below + rounded(at * bell));
        reference_put(dx, i, rounded(reference_number(dy, i) * slope));
    }
}

void kernel_swiglu_forward(int64_t count, Numbers gate, Numbers up, Numbers y)
{
    for (int64_t i = 0; i < count; i++) {
        const real g = reference_number(gate, i);
        reference_put(y, i, rounded(rounded(g * logistic(g)) * reference_number(up, i)));
    }
}

void kernel_swiglu_backward(int64_t count, Numbers dy, Numbers gate, Numbers up, Numbers dgate,
                            Numbers dup)
{
    for (int64_t i = 0; i < count; i++) {
        real g = reference_number(gate, i), d = reference_number(dy, i), open = logistic(g);
        real slope = rounded(open * rounded(1 + rounded(g * logistic(-g))));
        const real times = rounded(d * reference_number(up, i));
        reference_put(dup, i, rounded(d * rounded(g * open)));
        reference_put(dgate, i, rounded(times * slope));
    }
}

/* ---- rotary positions ------------------------------------------------------------------------------------ */

/** Turns the pairs of one head at one position. */
static void turn(const Rotary *rotary, Order order, bool back, int64_t position, Numbers x,
                 Numbers y, int64_t at)
{
    const int64_t half = rotary->head_size / 2;
    for (int64_t k = 0; k < half; k++) {
        const double angle = (double)position * rotary_speed(rotary, k);
        const real c = rounded(cos(angle)), s = rounded(back ? -sin(angle) : sin(angle));
        const real pair[] = {reference_number(x, at + k), reference_number(x, at + k + half)},
                   lower[] = {c, -s}, upper[] = {s, c};
        reference_put(y, at + k, reference_dot(order, pair, 1, lower, 1));
        reference_put(y, at + k + half, reference_dot(order, pair, 1, upper, 1));
    }
}

void kernel_rotary(const Rotary *rotary, bool back, Numbers x, Numbers y)
{
    const Order order = reference_order(2);
    const int64_t rows = rotary->batch * rotary->positions;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t a = 0; a < rotary->heads; a++) {
            const int64_t at = (r * rotary->heads + a) * rotary->head_size;
            turn(rotary, order, back, rotary->first + r % rotary->positions, x, y, at);
        }
}

/* ---- dropout --------------------------------------------------------------------------------------------- */

static bool is_kept(const DropoutMask *mask, int64_t row, int64_t column)
{
    const uint64_t sample = (uint64_t)mask->samples[row / mask->positions];
    const uint64_t global_column = (uint64_t)(mask->column_begin + column);
    const Philox4 drawn = philox(mask->key, (uint32_t)sample, (uint32_t)(sample >> 32),
                                 (uint32_t)(mask->position_begin + row % mask->positions),
                                 (uint32_t)(global_column / 4));
    return philox_uniform(drawn.word[global_column % 4]) >= mask->probability;
}

void kernel_dropout_draw(int64_t rows, int64_t columns, const DropoutMask *mask, uint32_t *kept)
{
    const int64_t words = dropout_words(columns);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t w = 0; w < words; w++) {
            kept[r * words + w] = 0;
            for (int64_t c = w * DROPOUT_BITS; c < (w + 1) * DROPOUT_BITS && c < columns; c++)
                if (is_kept(mask, r, c))
                    kept[r * words + w] |= UINT32_C(1) << c % DROPOUT_BITS;
        }
}

/** Element (row, column) after dropout: x divided by the probability of being kept, or 0. */
static real dropped(int64_t columns, double probability, const uint32_t *kept, int64_t row,
                    int64_t column, real x)
{
    const uint32_t word = kept[row * dropout_words(columns) + column / DROPOUT_BITS];
    return word >> column % DROPOUT_BITS & 1 ? rounded(x / rounded(1 - probability)) : 0;
}

void kernel_dropout(DropoutOperation operation, int64_t rows, int64_t columns, double probability,
                    const uint32_t *kept, Numbers dy, Numbers x, Numbers y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            const int64_t i = r * columns + c;
            const real at = reference_number(x, i);
            const real from = operation == DROPOUT        ? at
                              : operation == GELU_DROPOUT ? gelu(at)
                                                          : reference_number(dy, i);
            const real kept_of_it = dropped(columns, probability, kept, r, c, from);
            reference_put(y, i,
                          operation == GELU_DROPOUT_BACKWARD ? rounded(gelu_slope(at) * kept_of_it)
                                                             : kept_of_it);
        }
}
