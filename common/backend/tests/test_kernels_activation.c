/* GELU in both forms, SwiGLU and rotary positions against their definitions. */
#include "backend/tests/comparison.h"

static void call_gelu_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_gelu_forward(t[0].count, in_double(t[0].number), in_double(t[1].number));
    else
        kernel_gelu_forward(t[0].count, in_full(t[0].single), in_full(t[1].single));
}

static void call_gelu_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_gelu_backward(t[0].count, in_double(t[0].number), in_double(t[1].number),
                                in_double(t[2].number));
    else
        kernel_gelu_backward(t[0].count, in_full(t[0].single), in_full(t[1].single),
                             in_full(t[2].single));
}

static void call_gelu_tanh_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_gelu_tanh_forward(t[0].count, in_double(t[0].number), in_double(t[1].number));
    else
        kernel_gelu_tanh_forward(t[0].count, in_full(t[0].single), in_full(t[1].single));
}

static void call_gelu_tanh_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_gelu_tanh_backward(t[0].count, in_double(t[0].number), in_double(t[1].number),
                                     in_double(t[2].number));
    else
        kernel_gelu_tanh_backward(t[0].count, in_full(t[0].single), in_full(t[1].single),
                                  in_full(t[2].single));
}

static void call_tanh_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_tanh_forward(t[0].count, t[0].number, t[1].number);
    else
        kernel_tanh_forward(t[0].count, t[0].single, t[1].single);
}

static void call_tanh_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_tanh_backward(t[0].count, t[0].number, t[1].number, t[2].number);
    else
        kernel_tanh_backward(t[0].count, t[0].single, t[1].single, t[2].single);
}

static void call_swiglu_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_swiglu_forward(t[0].count, in_double(t[0].number), in_double(t[1].number),
                                 in_double(t[2].number));
    else
        kernel_swiglu_forward(t[0].count, in_full(t[0].single), in_full(t[1].single),
                              in_full(t[2].single));
}

static void call_swiglu_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_swiglu_backward(t[0].count, in_double(t[0].number), in_double(t[1].number),
                                  in_double(t[2].number), in_double(t[3].number),
                                  in_double(t[4].number));
    else
        kernel_swiglu_backward(t[0].count, in_full(t[0].single), in_full(t[1].single),
                               in_full(t[2].single), in_full(t[3].single), in_full(t[4].single));
}

/** An element-wise kernel, and how many of its tensors are arguments and results. */
typedef struct Activation {
    const char *name;
    Call *call;
    int arguments, results;
} Activation;

static const Activation ACTIVATIONS[] = {
    {"gelu_forward", call_gelu_forward, 1, 1},
    {"gelu_backward", call_gelu_backward, 2, 1},
    {"gelu_tanh_forward", call_gelu_tanh_forward, 1, 1},
    {"gelu_tanh_backward", call_gelu_tanh_backward, 2, 1},
    {"tanh_forward", call_tanh_forward, 1, 1},
    {"tanh_backward", call_tanh_backward, 2, 1},
    {"swiglu_forward", call_swiglu_forward, 2, 1},
    {"swiglu_backward", call_swiglu_backward, 3, 2},
};
enum { KINDS = sizeof ACTIVATIONS / sizeof *ACTIVATIONS };

static Comparison activation_of(const Activation *activation, int size)
{
    Comparison c = comparison_of(activation->name, size);
    c.bound = 0x1p-22;
    for (int t = 0; t < activation->arguments + activation->results; t++)
        add_twin(&c, c.rows * c.columns, t < activation->arguments ? NORMAL : JUNK);
    return c;
}

START_TEST(activations_match_their_definitions)
{
    const Activation *activation = &ACTIVATIONS[_i % KINDS];
    Comparison c = activation_of(activation, _i / KINDS);
    for (int t = 0; t < activation->arguments; t++)
        for (int64_t i = 0; i < c.twins[t].count; i++)
            c.twins[t].start[i] *= 3; /* reaches the tails of the function */
    compare(&c, activation->call);
}
END_TEST

START_TEST(nan_stays_nan_and_does_not_spread)
{
    const Activation *activation = &ACTIVATIONS[_i % KINDS];
    Comparison c = activation_of(activation, _i / KINDS);
    for (int t = 0; t < activation->arguments; t++)
        for (int64_t i = t; i < c.twins[t].count; i += 4)
            c.twins[t].start[i] = NAN;
    compare(&c, activation->call);
}
END_TEST

START_TEST(gelu_is_within_an_ulp_of_one_everywhere)
{
    enum { COUNT = 4001 };
    const size_t bytes = COUNT * sizeof(float);
    float *x = tensor_memory(bytes), *y = tensor_memory(bytes);
    float *slope = tensor_memory(bytes), *ones = tensor_memory(bytes);
    const double root_half = sqrt(0.5);
    for (int from = -20; from < 20; from += 1) {
        for (int i = 0; i < COUNT; i++) {
            x[i] = (float)(from + (double)i / (COUNT - 1));
            ones[i] = 1;
        }
        kernel_gelu_forward(COUNT, in_full(x), in_full(y));
        kernel_gelu_backward(COUNT, in_full(ones), in_full(x), in_full(slope));
        for (int i = 0; i < COUNT; i++) {
            const double a = x[i], below = erfc(-a * root_half) / 2;
            const double exact = a * below,
                         exact_slope = below + a * exp(-a * a / 2) / sqrt(2 * 3.141592653589793);
            if (!(fabs(y[i] - exact) <= 0x1p-23 * fmax(1, fabs(exact))))
                ck_abort_msg("gelu(%.9g) is %.9g instead of %.9g", a, (double)y[i], exact);
            if (!(fabs(slope[i] - exact_slope) <= 0x1p-22))
                ck_abort_msg("gelu'(%.9g) is %.9g instead of %.9g", a, (double)slope[i],
                             exact_slope);
        }
    }
    tensor_memory_free(x);
    tensor_memory_free(y);
    tensor_memory_free(slope);
    tensor_memory_free(ones);
}
END_TEST

START_TEST(gelu_of_infinity_and_nan)
{
    static const float numbers[] = {INFINITY, -INFINITY, NAN, -0.0f, 3e38f, -3e38f};
    float *x = tensor_memory(4 * sizeof numbers), *ones = x + 6, *y = x + 12, *slope = x + 18;
    memcpy(x, numbers, sizeof numbers);
    kernel_vector_fill(6, 1, ones);
    kernel_gelu_forward(6, in_full(x), in_full(y));
    kernel_gelu_backward(6, in_full(ones), in_full(x), in_full(slope));
    ck_assert(y[0] == INFINITY && isnan(y[2]) && y[3] == 0 && y[4] == 3e38f);
    ck_assert(fabsf(y[1]) < 1e-30f && fabsf(y[5]) < 1e-30f);
    ck_assert(slope[0] == 1 && fabsf(slope[1]) < 1e-30f && isnan(slope[2]) && slope[3] == 0.5f &&
              slope[4] == 1);
    tensor_memory_free(x);
}
END_TEST

/* Calls a kernel of x and y with the result in z, then with the result over x. */
static void must_be_overwritable(void (*kernel)(int64_t, const real *, const real *, real *))
{
    enum { COUNT = 5 * 331 };
    float *x = tensor_memory(3 * COUNT * sizeof *x), *y = x + COUNT, *z = y + COUNT;
    for (int i = 0; i < 2 * COUNT; i++)
        x[i] = (float)philox_normal_at(philox_key(3, "over", 0), (uint64_t)i);
    kernel(COUNT, x, y, z);
    kernel(COUNT, x, y, x);
    ck_assert_mem_eq(x, z, COUNT * sizeof *x);
    tensor_memory_free(x);
}

static void gelu_forward_of_one(int64_t count, const real *x, const real *y, real *z)
{
    (void)y;
    kernel_gelu_forward(count, in_full(x), in_full(z));
}

static void gelu_tanh_forward_of_one(int64_t count, const real *x, const real *y, real *z)
{
    (void)y;
    kernel_gelu_tanh_forward(count, in_full(x), in_full(z));
}

static void gelu_backward_of_one(int64_t count, const real *x, const real *y, real *z)
{
    kernel_gelu_backward(count, in_full(x), in_full(y), in_full(z));
}

static void gelu_tanh_backward_of_one(int64_t count, const real *x, const real *y, real *z)
{
    kernel_gelu_tanh_backward(count, in_full(x), in_full(y), in_full(z));
}

static void swiglu_forward_of_two(int64_t count, const real *x, const real *y, real *z)
{
    kernel_swiglu_forward(count, in_full(x), in_full(y), in_full(z));
}

static void swiglu_gradient_of_gate(int64_t count, const real *x, const real *y, real *z)
{
    real *dup = tensor_memory((size_t)count * sizeof *dup);
    kernel_swiglu_backward(count, in_full(x), in_full(y), in_full(y), in_full(z), in_full(dup));
    tensor_memory_free(dup);
}

static void swiglu_gradient_of_up(int64_t count, const real *x, const real *y, real *z)
{
    real *dgate = tensor_memory((size_t)count * sizeof *dgate);
    kernel_swiglu_backward(count, in_full(x), in_full(y), in_full(y), in_full(dgate), in_full(z));
    tensor_memory_free(dgate);
}

START_TEST(results_may_be_written_over_arguments)
{
    must_be_overwritable(gelu_forward_of_one);
    must_be_overwritable(gelu_backward_of_one);
    must_be_overwritable(gelu_tanh_forward_of_one);
    must_be_overwritable(gelu_tanh_backward_of_one);
    must_be_overwritable(swiglu_forward_of_two);
    must_be_overwritable(swiglu_gradient_of_gate);
    must_be_overwritable(swiglu_gradient_of_up);
}
END_TEST

/* ---- rotary positions ------------------------------------------------------------------------------------ */

static const Rotary ROTARIES[] = {
    {1, 1, 1, 2, 0, {.theta = 10000}},
    {2, 5, 3, 4, 7, {.theta = 100}},
    {3, 17, 2, 48, 0, {.theta = 10000}},
    {1, 9, 1, 300, 3, {.theta = 5e5}},
    {1, 3, 2, 64, 100000, {.theta = 1e4}},
    {2, 64, 4, 32, 0, {.theta = 10000}},
    {2, 5, 3, 4, 7, {.theta = 100, .factor = 4}},
    {1, 9, 2, 128, 70, {.theta = 5e5, .factor = 8, .original = 8192, .low = 1, .high = 4}},
    {0, 4, 1, 2, 0, {.theta = 10000}},
};
enum { ROTARY_CASES = 2 * sizeof ROTARIES / sizeof *ROTARIES };

static void call_rotary(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_rotary(c->rotary, c->accumulate, in_double(t[0].number), in_double(t[1].number));
    else
        kernel_rotary(c->rotary, c->accumulate, in_full(t[0].single), in_full(t[1].single));
}

START_TEST(rotary_and_its_inverse_match_their_definitions)
{
    const Rotary *r = &ROTARIES[_i / 2];
    const int64_t count = r->batch * r->positions * r->heads * r->head_size;
    Comparison c = {.kernel = "rotary", .rotary = r, .accumulate = _i % 2, .bound = 0x1p-22};
    add_twin(&c, count, NORMAL);
    add_twin(&c, count, JUNK);
    compare(&c, call_rotary);
}
END_TEST

START_TEST(turning_back_in_place_gives_the_numbers_before)
{
    const Rotary *r = &ROTARIES[2];
    const int64_t count = r->batch * r->positions * r->heads * r->head_size;
    float *x = tensor_memory((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)i;
    kernel_rotary(r, false, in_full(x), in_full(x));
    kernel_rotary(r, true, in_full(x), in_full(x));
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol((double)x[i], (double)i, 1e-6 * (double)count);
    tensor_memory_free(x);
}
END_TEST

static TCase *all_kernels(const char *name, void (*set_threads)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_threads, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, activations_match_their_definitions, 0, KINDS * SIZES);
    tcase_add_loop_test(tests, nan_stays_nan_and_does_not_spread, 0, KINDS * SIZES);
    tcase_add_loop_test(tests, rotary_and_its_inverse_match_their_definitions, 0, ROTARY_CASES);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("kernels: GELU, SwiGLU and rotary positions");
    suite_add_tcase(s, all_kernels("one thread", one_thread));
    if (kernels_run_on_the_host())
        suite_add_tcase(s, all_kernels("two threads", two_threads));
    TCase *tests = tcase_create("properties");
    tcase_add_checked_fixture(tests, one_thread, NULL);
    tcase_add_test(tests, gelu_is_within_an_ulp_of_one_everywhere);
    tcase_add_test(tests, gelu_of_infinity_and_nan);
    tcase_add_test(tests, results_may_be_written_over_arguments);
    tcase_add_test(tests, turning_back_in_place_gives_the_numbers_before);
    suite_add_tcase(s, tests);
    return s;
}
