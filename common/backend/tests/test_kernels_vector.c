/* Element-wise kernels, copies and optimisers against their definitions. */
#include "backend/tests/comparison.h"

static const AdamW ADAMW = {0.01, 0.9, 0.999, 1e-8, 0.1, 3, NULL};

static void call_vector_fill(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_vector_fill(t[0].count, -0.3, t[0].number);
    else
        kernel_vector_fill(t[0].count, -0.3, t[0].single);
}

static void call_vector_copy(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_vector_copy(t[0].count, t[0].number, t[1].number);
    else
        kernel_vector_copy(t[0].count, t[0].single, t[1].single);
}

static void call_vector_add(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_vector_add(t[0].count, t[0].number, in_double(t[1].number), t[2].number);
    else
        kernel_vector_add(t[0].count, t[0].single, in_full(t[1].single), t[2].single);
}

static void call_vector_accumulate(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_vector_accumulate(t[0].count, t[0].number, t[1].number);
    else
        kernel_vector_accumulate(t[0].count, t[0].single, t[1].single);
}

static void call_vector_scale(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_vector_scale(t[0].count, 1.0 / 3, t[0].number);
    else
        kernel_vector_scale(t[0].count, 1.0 / 3, t[0].single);
}

static void call_sgd_step(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_sgd_step(t[0].count, t[0].number, t[1].number, 0.1, 0.05);
    else
        kernel_sgd_step(t[0].count, t[0].single, t[1].single, 0.1, 0.05);
}

static void call_adamw_step(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_adamw_step(t[0].count, t[0].number, t[1].number, t[2].number, t[3].number,
                             &ADAMW);
    else
        kernel_adamw_step(t[0].count, t[0].single, t[1].single, t[2].single, t[3].single, &ADAMW);
}

/* The kernels above, with the initial contents of their tensors. */
static const struct {
    const char *name;
    Call *call;
    int contents[4];
} KERNELS[] = {
    {"vector_fill", call_vector_fill, {JUNK}},
    {"vector_copy", call_vector_copy, {NORMAL, JUNK}},
    {"vector_add", call_vector_add, {NORMAL, NORMAL, JUNK}},
    {"vector_accumulate", call_vector_accumulate, {NORMAL, NORMAL}},
    {"vector_scale", call_vector_scale, {NORMAL}},
    {"sgd_step", call_sgd_step, {NORMAL, NORMAL}},
    {"adamw_step", call_adamw_step, {NORMAL, NORMAL, NORMAL, UNIFORM}},
};
enum { KERNEL_COUNT = 7 };

static Comparison case_of(int i)
{
    Comparison c = comparison_of(KERNELS[i % KERNEL_COUNT].name, i / KERNEL_COUNT);
    for (int t = 0; t < 4 && KERNELS[i % KERNEL_COUNT].contents[t]; t++)
        add_twin(&c, c.rows * c.columns, KERNELS[i % KERNEL_COUNT].contents[t]);
    return c;
}

START_TEST(element_wise_kernels_match_their_definitions)
{
    Comparison c = case_of(_i);
    compare(&c, KERNELS[_i % KERNEL_COUNT].call);
}
END_TEST

START_TEST(nan_stays_nan_and_does_not_spread)
{
    Comparison c = case_of(_i);
    for (int t = 0; t < c.twin_count; t++)
        for (int64_t i = t; i < c.twins[t].count; i += 5)
            c.twins[t].start[i] = NAN;
    compare(&c, KERNELS[_i % KERNEL_COUNT].call);
}
END_TEST

/* More numbers than a GPU's blocks have threads; single precision would be off by a thousandth. */
START_TEST(the_sum_of_squares_is_summed_in_double_precision)
{
    static const int64_t counts[] = {0, 1, 31, 1000, 300000};
    const int64_t count = counts[_i];
    float *x = tensor_memory((size_t)(count + 1) * sizeof *x);
    double exact = 0;
    for (int64_t i = 0; i <= count; i++) { /* x[count] must be ignored */
        x[i] = i == 0 ? 1e4f : (float)(i % 7) - 2;
        exact += i < count ? (double)x[i] * (double)x[i] : 0;
    }
    ck_assert_double_eq_tol(kernel_vector_square_sum(count, x), exact, 1e-12 * exact + 1e-300);
    tensor_memory_free(x);
}
END_TEST

START_TEST(copy_rows_copies_a_block_and_nothing_else)
{
    float *x = tensor_memory(4 * (9 + 7) * sizeof *x), *y = x + 4 * 9;
    for (int i = 0; i < 4 * 9; i++)
        x[i] = (float)i;
    for (int i = 0; i < 4 * 7; i++)
        y[i] = -1;
    kernel_copy_rows(4, 5, x + 2, 9, y + 1, 7);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 7; c++)
            ck_assert(y[r * 7 + c] == (c >= 1 && c < 6 ? (float)(r * 9 + 2 + c - 1) : -1));
    tensor_memory_free(x);
}
END_TEST

/* Numbers of torch.optim (1.13, double): three steps of AdamW(lr=0.01, betas=(0.9, 0.999),
 * eps=1e-8, weight_decay=0.1). */
START_TEST(adamw_makes_the_steps_of_pytorch)
{
    static const float gradients[3][4] = {
        {0.5f, -2, 0, 1e-4f}, {-0.25f, 1, 0.125f, 3e-4f}, {1, 1, -4, 0}};
    static const double weights[3][4] = {
        {0.9890000002, -0.48950000005, 0.24975, 2.98700099990001},
        {0.9853476298705847, -0.48634712967019317, 0.2420588826060143, 2.9748365980540488},
        {0.9777811663376385, -0.4865915553445342, 0.24802226713195089, 2.9647676753847096}};
    static const double means[] = {0.118, 0.028, -0.38875, 3.51e-05};
    static const double squares[] = {0.00131193775, 0.005991004, 0.016015609375, 9.989001e-11};
    float *w = tensor_memory(16 * sizeof *w), *m = w + 4, *v = m + 4, *g = v + 4;
    memcpy(w, (const float[12]){1, -0.5f, 0.25f, 3}, 12 * sizeof *w);
    double w2[] = {1, -0.5, 0.25, 3}, m2[4] = {0}, v2[4] = {0}, g2[4];
    AdamW adamw = ADAMW;
    for (int step = 0; step < 3; step++) {
        adamw.step = step + 1;
        for (int i = 0; i < 4; i++)
            g2[i] = g[i] = gradients[step][i];
        kernel_adamw_step(4, w, g, m, v, &adamw);
        reference_adamw_step(4, w2, g2, m2, v2, &adamw);
        for (int i = 0; i < 4; i++) {
            ck_assert_double_eq_tol(w2[i], weights[step][i],
                                    1e-9); /* 1e-4 and 3e-4 are floats here */
            ck_assert_double_eq_tol(w[i], weights[step][i], 3e-7 * fabs(weights[step][i]));
        }
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq_tol(m[i], means[i], 1e-7); /* terms cancel */
        ck_assert_double_eq_tol(v[i], squares[i], 3e-7 * squares[i]);
        ck_assert_double_eq_tol(m2[i], means[i], 1e-7 * fabs(means[i]));
        ck_assert_double_eq_tol(v2[i], squares[i], 1e-7 * squares[i]);
    }
    tensor_memory_free(w);
}
END_TEST

/* There are seven blocks, and the last one is short. One has a gradient in each step, one only in
 * the first, one from the third on, and one has NaN at the end. The moments of the others must not
 * be read. */
START_TEST(adamw_skips_blocks_that_never_had_a_gradient_and_gives_the_same_bits)
{
    enum { COUNT = 6 * ADAMW_BLOCK + 40, BLOCKS = 7, STEPS = 4 };
    float *all = tensor_memory(7 * COUNT * sizeof *all), *w[] = {all, all + COUNT},
          *m[] = {w[1] + COUNT, w[1] + 2 * COUNT}, *v[] = {m[1] + COUNT, m[1] + 2 * COUNT},
          *g = v[1] + COUNT;
    uint8_t *seen = tensor_memory(BLOCKS);
    memset(seen, 0, BLOCKS);
    const PhiloxKey key = philox_key(1, "numbers", 0);
    for (int i = 0; i < COUNT; i++) {
        w[0][i] = w[1][i] = (float)philox_normal_at(key, (uint64_t)i);
        m[0][i] = v[0][i] = m[1][i] = v[1][i] = 0;
        if (i / ADAMW_BLOCK == 2 || i / ADAMW_BLOCK == 6)
            m[1][i] = v[1][i] = NAN;
    }
    AdamW adamw = ADAMW;
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            g[i] = i % 3 == 0 ? (float)philox_normal_at(key, (uint64_t)(step * COUNT + i)) : 0;
        for (int block = 0; block < BLOCKS; block++)
            if (!(block == 1 || (block == 3 && step == 1) || (block == 4 && step > 2)))
                for (int i = block * ADAMW_BLOCK; i < (block + 1) * ADAMW_BLOCK && i < COUNT; i++)
                    g[i] = i % 2 ? 0 : -0.0f;
        if (step == STEPS)
            g[5 * ADAMW_BLOCK + 7] = NAN;
        adamw.step = step;
        adamw.seen = NULL;
        kernel_adamw_step(COUNT, w[0], g, m[0], v[0], &adamw);
        adamw.seen = seen;
        kernel_adamw_step(COUNT, w[1], g, m[1], v[1], &adamw);
    }
    ck_assert(isnan(w[0][5 * ADAMW_BLOCK + 7]));
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(isnan(w[0][i]) ? isnan(w[1][i]) : w[0][i] == w[1][i],
                      "number %d: %.9g and %.9g", i, w[0][i], w[1][i]);
    for (int block = 0; block < BLOCKS; block++)
        ck_assert_int_eq(seen[block], block == 1 || block == 3 || block == 4 || block == 5);
    tensor_memory_free(all);
    tensor_memory_free(seen);
}
END_TEST

/* torch.optim.SGD(lr=0.1, weight_decay=0.05), two steps. */
START_TEST(sgd_takes_the_same_steps_as_pytorch)
{
    static const float gradients[2][4] = {{0.5f, -2, 0, 1e-4f}, {-0.25f, 1, 0.125f, 3e-4f}};
    static const double weights[2][4] = {{0.945, -0.2975, 0.24875, 2.98499},
                                         {0.965275, -0.3960125, 0.23500625, 2.97003505}};
    float *w = tensor_memory(8 * sizeof *w), *g = w + 4;
    memcpy(w, (const float[4]){1, -0.5f, 0.25f, 3}, 4 * sizeof *w);
    double w2[] = {1, -0.5, 0.25, 3}, g2[4];
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 4; i++)
            g2[i] = g[i] = gradients[step][i];
        kernel_sgd_step(4, w, g, 0.1, 0.05);
        reference_sgd_step(4, w2, g2, 0.1, 0.05);
        for (int i = 0; i < 4; i++) {
            ck_assert_double_eq_tol(w2[i], weights[step][i], 1e-11);
            ck_assert_double_eq_tol(w[i], weights[step][i], 2e-7 * fabs(weights[step][i]));
        }
    }
    tensor_memory_free(w);
}
END_TEST

/* The parts of two threads are added to nonzero numbers, so the order of the parts matters. */
START_TEST(many_runs_give_the_same_bits)
{
    enum { WIDTH = 768, HEIGHT = 301, RUNS = 20 };
    enum { ALL = HEIGHT * WIDTH };
    float *x = tensor_memory(3 * ALL * sizeof *x), *y[] = {x + ALL, x + 2 * ALL};
    float *mean = tensor_memory((2 * HEIGHT + 4 * WIDTH) * sizeof *mean), *rstd = mean + HEIGHT;
    float *sums[] = {rstd + HEIGHT, rstd + HEIGHT + 2 * WIDTH};
    const PhiloxKey key = philox_key(1, "x", 0);
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        x[i] = (float)philox_normal_at(key, (uint64_t)i);
    kernel_vector_fill(HEIGHT, 0, mean);
    kernel_vector_fill(HEIGHT, 1, rstd);
    for (int n = 0; n < RUNS; n++) {
        const int at = n > 0;
        kernel_vector_fill(2 * WIDTH, 100.0 / 3, sums[at]);
        kernel_layer_norm_backward(HEIGHT, WIDTH, x, x, x, mean, rstd, y[at], false, sums[at],
                                   sums[at] + WIDTH);
        ck_assert(memcmp(y[0], y[at], ALL * sizeof *x) == 0);
        ck_assert(memcmp(sums[0], sums[at], 2 * WIDTH * sizeof *x) == 0);
    }
    tensor_memory_free(x);
    tensor_memory_free(mean);
}
END_TEST

static TCase *all_kernels(const char *name, void (*set_threads)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_threads, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, element_wise_kernels_match_their_definitions, 0,
                        KERNEL_COUNT * SIZES);
    tcase_add_loop_test(tests, nan_stays_nan_and_does_not_spread, 0, KERNEL_COUNT * SIZES);
    tcase_add_loop_test(tests, the_sum_of_squares_is_summed_in_double_precision, 0, 5);
    tcase_add_test(tests, copy_rows_copies_a_block_and_nothing_else);
    tcase_add_test(tests, adamw_makes_the_steps_of_pytorch);
    tcase_add_test(tests, adamw_skips_blocks_that_never_had_a_gradient_and_gives_the_same_bits);
    tcase_add_test(tests, sgd_takes_the_same_steps_as_pytorch);
    tcase_add_test(tests, many_runs_give_the_same_bits);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("kernels: element-wise, copies, optimisers");
    suite_add_tcase(s, all_kernels("one thread", one_thread));
    if (kernels_run_on_the_host())
        suite_add_tcase(s, all_kernels("two threads", two_threads));
    return s;
}
