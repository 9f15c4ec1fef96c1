/* Each backward kernel of the reference backend, compared with central differences of its forward
 * kernel. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/tests/twin.h"

/* twin.h and backend.h declare the same functions here, because real is double. */
#define SAME(name)                                                                                 \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(__typeof__(reference_##name), __typeof__(kernel_##name)),     \
        #name)
SAME(linear_forward);
SAME(linear_backward_input);
SAME(linear_backward_weight);
SAME(linear_backward_bias);
SAME(lookup_forward);
SAME(lookup_backward);
SAME(layer_norm_forward);
SAME(layer_norm_backward);
SAME(rms_norm_forward);
SAME(rms_norm_backward);
SAME(gelu_forward);
SAME(gelu_backward);
SAME(gelu_tanh_forward);
SAME(gelu_tanh_backward);
SAME(swiglu_forward);
SAME(swiglu_backward);
SAME(tanh_forward);
SAME(tanh_backward);
SAME(dropout_draw);
SAME(dropout);
SAME(rotary);
SAME(attention_forward);
SAME(attention_backward);
SAME(attention_work);
SAME(cross_entropy);
SAME(row_max);
SAME(row_sum_exp_forward);
SAME(row_sum_exp_backward);
SAME(row_pick_forward);
SAME(row_pick_backward);
SAME(logarithm_forward);
SAME(logarithm_backward);
SAME(vector_subtract);
SAME(vector_fill);
SAME(vector_copy);
SAME(vector_add);
SAME(vector_accumulate);
SAME(vector_scale);
SAME(copy_rows);
SAME(sgd_step);
SAME(adamw_step);

enum { MOST = 512, ARGUMENTS = 3 };

static const int32_t IDS[] = {2, NO_ID, 0, 2, 3};
static const int32_t KEYS_SHOWN[] = {1, 0, 1, 1, 0, 1, 1, 0}; /* 2 samples of 4 */
static const int64_t SAMPLE_NUMBERS[] = {5, 1234567890123};
static const AttentionShape SHAPES[] = {{2, 4, 3, 2, 0.6, false, 0}, {2, 4, 3, 2, 0.6, true, 0}};
static const Rotary ROTARY = {2, 3, 2, 4, 5, {.theta = 100}};

/** A forward kernel with its backward: y = f(x0, x1, x2); backward turns dy into dx0, dx1, dx2. */
typedef struct Operation {
    int64_t y_count, x_count[ARGUMENTS];
    void (*forward)(double *const x[ARGUMENTS], double *y);
    void (*backward)(double *const x[ARGUMENTS], const double *dy, double *const dx[ARGUMENTS]);
} Operation;

static void linear(double *const x[ARGUMENTS], double *y)
{
    kernel_linear_forward(5, 3, 4, in_full(x[0]), in_full(x[1]), x[2], in_full(y));
}

static void linear_gradient(double *const x[ARGUMENTS], const double *dy,
                            double *const dx[ARGUMENTS])
{
    kernel_linear_backward_input(5, 3, 4, in_full(dy), in_full(x[1]), in_full(dx[0]), false);
    kernel_linear_backward_weight(5, 3, 4, in_full(dy), in_full(x[0]), dx[1], false);
    kernel_vector_fill(4, 0, dx[2]);
    kernel_linear_backward_bias(5, 4, in_full(dy), dx[2]);
}

static void lookup(double *const x[ARGUMENTS], double *y)
{
    kernel_lookup_forward(5, 3, IDS, in_full(x[0]), in_full(y));
}

static void lookup_gradient(double *const x[ARGUMENTS], const double *dy,
                            double *const dx[ARGUMENTS])
{
    (void)x;
    kernel_vector_fill(4 * 3, 0, dx[0]);
    kernel_lookup_backward(5, 3, IDS, dy, dx[0]);
}

static void layer_norm(double *const x[ARGUMENTS], double *y)
{
    double mean[5], rstd[5];
    kernel_layer_norm_forward(5, 7, x[0], x[1], x[2], 1e-5, in_full(y), mean, rstd);
}

static void layer_norm_gradient(double *const x[ARGUMENTS], const double *dy,
                                double *const dx[ARGUMENTS])
{
    double y[5 * 7], mean[5], rstd[5];
    kernel_layer_norm_forward(5, 7, x[0], x[1], x[2], 1e-5, in_full(y), mean, rstd);
    kernel_vector_fill(7, 0, dx[1]);
    kernel_vector_fill(7, 0, dx[2]);
    kernel_layer_norm_backward(5, 7, dy, x[0], x[1], mean, rstd, dx[0], false, dx[1], dx[2]);
}

static void rms_norm(double *const x[ARGUMENTS], double *y)
{
    double rstd[5];
    kernel_rms_norm_forward(5, 7, x[0], x[1], 1e-5, in_full(y), rstd);
}

static void rms_norm_gradient(double *const x[ARGUMENTS], const double *dy,
                              double *const dx[ARGUMENTS])
{
    double y[5 * 7], rstd[5];
    kernel_rms_norm_forward(5, 7, x[0], x[1], 1e-5, in_full(y), rstd);
    kernel_vector_fill(7, 0, dx[1]);
    kernel_rms_norm_backward(5, 7, dy, x[0], x[1], rstd, dx[0], false, dx[1]);
}

static void gelu(double *const x[ARGUMENTS], double *y)
{
    kernel_gelu_forward(35, in_full(x[0]), in_full(y));
}

static void gelu_gradient(double *const x[ARGUMENTS], const double *dy, double *const dx[ARGUMENTS])
{
    kernel_gelu_backward(35, in_full(dy), in_full(x[0]), in_full(dx[0]));
}

static void gelu_tanh(double *const x[ARGUMENTS], double *y)
{
    kernel_gelu_tanh_forward(35, in_full(x[0]), in_full(y));
}

static void gelu_tanh_gradient(double *const x[ARGUMENTS], const double *dy,
                               double *const dx[ARGUMENTS])
{
    kernel_gelu_tanh_backward(35, in_full(dy), in_full(x[0]), in_full(dx[0]));
}

static void tanh_by_kernel(double *const x[ARGUMENTS], double *y)
{
    kernel_tanh_forward(35, x[0], y);
}

static void tanh_gradient(double *const x[ARGUMENTS], const double *dy, double *const dx[ARGUMENTS])
{
    double y[35];
    kernel_tanh_forward(35, x[0], y);
    kernel_tanh_backward(35, dy, y, dx[0]);
}

static void swiglu(double *const x[ARGUMENTS], double *y)
{
    kernel_swiglu_forward(35, in_full(x[0]), in_full(x[1]), in_full(y));
}

static void swiglu_gradient(double *const x[ARGUMENTS], const double *dy,
                            double *const dx[ARGUMENTS])
{
    kernel_swiglu_backward(35, in_full(dy), in_full(x[0]), in_full(x[1]), in_full(dx[0]),
                           in_full(dx[1]));
}

static void rotary(double *const x[ARGUMENTS], double *y)
{
    kernel_rotary(&ROTARY, false, in_full(x[0]), in_full(y));
}

static void rotary_gradient(double *const x[ARGUMENTS], const double *dy,
                            double *const dx[ARGUMENTS])
{
    (void)x;
    kernel_rotary(&ROTARY, true, in_full(dy), in_full(dx[0]));
}

static const uint32_t *kept(void)
{
    static const DropoutMask some = {{{1, 2}}, 0.4, SAMPLE_NUMBERS, 3, 5, 0};
    static uint32_t bits[5];
    kernel_dropout_draw(5, 7, &some, bits);
    return bits;
}

static void dropout(double *const x[ARGUMENTS], double *y)
{
    kernel_dropout(DROPOUT, 5, 7, 0.4, kept(), (Numbers){0}, in_full(x[0]), in_full(y));
}

static void dropout_gradient(double *const x[ARGUMENTS], const double *dy,
                             double *const dx[ARGUMENTS])
{
    (void)x;
    kernel_dropout(DROPOUT, 5, 7, 0.4, kept(), (Numbers){0}, in_full(dy), in_full(dx[0]));
}

static void gelu_dropout(double *const x[ARGUMENTS], double *y)
{
    kernel_dropout(GELU_DROPOUT, 5, 7, 0.4, kept(), (Numbers){0}, in_full(x[0]), in_full(y));
}

static void gelu_dropout_gradient(double *const x[ARGUMENTS], const double *dy,
                                  double *const dx[ARGUMENTS])
{
    kernel_dropout(GELU_DROPOUT_BACKWARD, 5, 7, 0.4, kept(), in_full(dy), in_full(x[0]),
                   in_full(dx[0]));
}

static void attention_by(const AttentionShape *shape, double *const x[ARGUMENTS], double *y)
{
    double highest[2 * 3 * 4], sums[2 * 3 * 4], work[2 * 4 * 4];
    ck_assert_int_le(kernel_attention_work(shape), 2 * 4 * 4);
    kernel_attention_forward(shape, in_full(x[0]), in_full(x[1]), in_full(x[2]), KEYS_SHOWN,
                             in_full(y), highest, sums, work);
}

static void attention_gradient_by(const AttentionShape *shape, double *const x[ARGUMENTS],
                                  const double *dy, double *const dx[ARGUMENTS])
{
    double y[MOST], highest[2 * 3 * 4], sums[2 * 3 * 4], work[2 * 4 * 4];
    kernel_attention_forward(shape, in_full(x[0]), in_full(x[1]), in_full(x[2]), KEYS_SHOWN,
                             in_full(y), highest, sums, work);
    kernel_attention_backward(shape, in_full(x[0]), in_full(x[1]), in_full(x[2]), KEYS_SHOWN,
                              highest, sums, in_full(dy), in_full(dx[0]), in_full(dx[1]),
                              in_full(dx[2]), work);
}

static void attention(double *const x[ARGUMENTS], double *y)
{
    attention_by(&SHAPES[0], x, y);
}

static void attention_gradient(double *const x[ARGUMENTS], const double *dy,
                               double *const dx[ARGUMENTS])
{
    attention_gradient_by(&SHAPES[0], x, dy, dx);
}

/* The first query of the second sample sees no key. */
static void causal(double *const x[ARGUMENTS], double *y)
{
    attention_by(&SHAPES[1], x, y);
}

static void causal_gradient(double *const x[ARGUMENTS], const double *dy,
                            double *const dx[ARGUMENTS])
{
    attention_gradient_by(&SHAPES[1], x, dy, dx);
}

static void cross_entropy(double *const x[ARGUMENTS], double *y)
{
    static const int32_t labels[] = {0, 6, 3, 3, 1};
    double dlogits[5 * 7];
    kernel_cross_entropy(5, 7, x[0], labels, y, dlogits);
}

static void cross_entropy_gradient(double *const x[ARGUMENTS], const double *dy,
                                   double *const dx[ARGUMENTS])
{
    static const int32_t labels[] = {0, 6, 3, 3, 1};
    double losses[5];
    kernel_cross_entropy(5, 7, x[0], labels, losses, dx[0]);
    for (int r = 0; r < 5; r++)
        kernel_vector_scale(7, dy[r], dx[0] + 7 * r);
}

static const Operation OPERATIONS[] = {
    {5 * 4, {5 * 3, 4 * 3, 4}, linear, linear_gradient},
    {5 * 3, {4 * 3, 0, 0}, lookup, lookup_gradient},
    {5 * 7, {5 * 7, 7, 7}, layer_norm, layer_norm_gradient},
    {35, {35, 0, 0}, gelu, gelu_gradient},
    {35, {35, 0, 0}, dropout, dropout_gradient},
    {35, {35, 0, 0}, gelu_dropout, gelu_dropout_gradient},
    {48, {48, 48, 48}, attention, attention_gradient},
    {48, {48, 48, 48}, causal, causal_gradient},
    {5 * 7, {5 * 7, 7, 0}, rms_norm, rms_norm_gradient},
    {35, {35, 0, 0}, gelu_tanh, gelu_tanh_gradient},
    {35, {35, 0, 0}, tanh_by_kernel, tanh_gradient},
    {35, {35, 35, 0}, swiglu, swiglu_gradient},
    {48, {48, 0, 0}, rotary, rotary_gradient},
    {5, {35, 0, 0}, cross_entropy, cross_entropy_gradient},
};

/** The sum of dy y, whose derivative with respect to x backward should return. */
static double weighted(const Operation *operation, double *const x[ARGUMENTS], const double *dy)
{
    double y[MOST], sum = 0;
    operation->forward(x, y);
    for (int64_t i = 0; i < operation->y_count; i++)
        sum += dy[i] * y[i];
    return sum;
}

START_TEST(backward_is_the_derivative_of_forward)
{
    const Operation *operation = &OPERATIONS[_i];
    const PhiloxKey key = philox_key(1, "gradients", (uint64_t)_i);
    const double h = 1e-6;
    double numbers[ARGUMENTS][MOST], gradients[ARGUMENTS][MOST], dy[MOST];
    double *x[ARGUMENTS], *dx[ARGUMENTS];
    for (int a = 0; a < ARGUMENTS; a++) {
        x[a] = numbers[a];
        dx[a] = gradients[a];
        for (int64_t i = 0; i < MOST; i++) {
            x[a][i] = philox_normal_at(key, (uint64_t)(a * MOST + i));
            dx[a][i] = NAN;
        }
    }
    for (int64_t i = 0; i < MOST; i++)
        dy[i] = philox_normal_at(key, (uint64_t)(ARGUMENTS * MOST + i));
    operation->backward(x, dy, dx);
    for (int a = 0; a < ARGUMENTS; a++)
        for (int64_t i = 0; i < operation->x_count[a]; i++) {
            const double kept = x[a][i];
            x[a][i] = kept + h;
            const double above = weighted(operation, x, dy);
            x[a][i] = kept - h;
            const double slope = (above - weighted(operation, x, dy)) / (2 * h);
            x[a][i] = kept;
            ck_assert_msg(fabs(slope - dx[a][i]) <= 1e-8 * fmax(1, fabs(slope)),
                          "operation %d, argument %d, number %ld: %.12g instead of %.12g", _i, a,
                          (long)i, dx[a][i], slope);
        }
}
END_TEST

START_TEST(accumulate_adds_to_the_old_values)
{
    const double dy[] = {1, 2, 3, 4, 5, 6}, x[] = {1, -1, 2, 0, 3, 1},
                 weight[] = {2, 1, -1, 0.5, 3, 1};
    double written[9], added[9];
    kernel_linear_backward_input(3, 3, 2, in_full(dy), in_full(weight), in_full(written), false);
    kernel_vector_fill(9, 10, added);
    kernel_linear_backward_input(3, 3, 2, in_full(dy), in_full(weight), in_full(added), true);
    for (int i = 0; i < 9; i++)
        ck_assert_double_eq(added[i], written[i] + 10);
    kernel_linear_backward_weight(3, 2, 2, in_full(dy), in_full(x), written, false);
    kernel_vector_fill(4, 10, added);
    kernel_linear_backward_weight(3, 2, 2, in_full(dy), in_full(x), added, true);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(added[i], written[i] + 10);
    const double mean[] = {0.5, 1}, rstd[] = {2, 0.25};
    double dweight[3] = {1, 2, 3}, dbias[3] = {0}, dweight2[3] = {1, 2, 3}, dbias2[3] = {5, 5, 5};
    kernel_layer_norm_backward(2, 3, dy, x, weight, mean, rstd, written, false, dweight, dbias);
    kernel_vector_fill(6, 10, added);
    kernel_layer_norm_backward(2, 3, dy, x, weight, mean, rstd, added, true, dweight2, dbias2);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(added[i], written[i] + 10, 1e-14);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(dweight[i], dweight2[i]);
        ck_assert_double_eq(dbias[i] + 5, dbias2[i]);
    }
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("reference backend: gradients");
    TCase *tests = tcase_create("reference");
    tcase_add_loop_test(tests, backward_is_the_derivative_of_forward, 0,
                        sizeof OPERATIONS / sizeof *OPERATIONS);
    tcase_add_test(tests, accumulate_adds_to_the_old_values);
    suite_add_tcase(s, tests);
    return s;
}
