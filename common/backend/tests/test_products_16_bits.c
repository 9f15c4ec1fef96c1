/* Matrix products in bf16, and on GPUs in fp16, compared with their definition: arguments rounded,
 * everything else in double precision. */
#include <dirent.h>

#include "backend/tests/products.h"

/* rows, columns of the result, inner size: odd ones, and those of the model; the last two are too
 * small for bf16. */
static const int64_t PRODUCTS[][3] = {
    {1, 725, 725},  {3, 420, 419},  {17, 177, 175}, {33, 127, 126}, {4000, 17, 8},
    {10000, 3, 18}, {16000, 1, 33}, {513, 33, 31},  {127, 1380, 3}, {600, 900, 1},
    {256, 192, 64}, {128, 64, 64},  {127, 64, 64},  {33, 17, 3},
};
enum { EACH_TWICE = 2 * sizeof PRODUCTS / sizeof *PRODUCTS, NAN_AT = 100 };

static Precision precision;

static void bf16(void)
{
    one_thread();
    precision = BF16;
}

static void fp16(void)
{
    one_thread();
    precision = FP16;
}

static void bf16_on_two_threads(void)
{
    two_threads();
    precision = BF16;
}

/* On a CPU without oneDNN, there is nothing to test. */
static bool choose(void)
{
    Problem problem;
    reference_set_products(precision);
    const bool good = backend_set_products(precision, 0, &problem);
    if (!good)
        printf("skip - products in 16 bits: %s\n", problem.what);
    return good;
}

static void both_back_to_fp32(void)
{
    back_to_fp32();
    reference_set_products(FP32);
    backend_set_weights(NULL, 0, NULL);
}

static Comparison product_of(const char *kernel, int test)
{
    const int64_t *size = PRODUCTS[test / 2];
    return (Comparison){.kernel = kernel,
                        .rows = size[0],
                        .columns = size[1],
                        .inner = size[2],
                        .accumulate = test % 2 == 1};
}

START_TEST(forward_matches_its_definition_with_and_without_bias)
{
    if (!choose())
        return;
    compare_linear_forward(product_of("linear_forward", _i));
}
END_TEST

START_TEST(backward_input_matches_its_definition_written_or_added)
{
    if (!choose())
        return;
    compare_linear_backward_input(product_of("linear_backward_input", _i));
}
END_TEST

START_TEST(backward_weight_matches_its_definition_written_or_added)
{
    if (!choose())
        return;
    compare_backward_weight(product_of("linear_backward_weight", _i));
}
END_TEST

START_TEST(products_keep_nan_and_infinity)
{
    if (!choose())
        return;
    Comparison c = {.kernel = "linear_forward", .rows = 128, .columns = 64, .inner = 64};
    Twin *x = add_twin(&c, c.rows * c.inner, NORMAL);
    x->start[NAN_AT] = NAN;
    x->start[2 * NAN_AT] = INFINITY;
    x->start[3 * NAN_AT] = 3.4e38F; /* rounds to infinity */
    add_twin(&c, c.columns * c.inner, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, JUNK);
    compare(&c, call_linear_forward);
}
END_TEST

/* Leaves out numbers below 2^-126, which oneDNN's instructions treat as zero. */
START_TEST(numbers_round_to_the_nearest_and_ties_to_even)
{
    enum { BETWEEN = 12, COUNT = BETWEEN << 16 };
    static const uint32_t between[BETWEEN] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x3000,
                                              0x4000, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff};
    float *x = tensor_memory((2 * COUNT + 1) * sizeof *x), *y = x + COUNT, *one = y + COUNT;
    static double exact[COUNT], defined[COUNT];
    const double exact_one = 1;
    if (!choose())
        return;
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bits = i / BETWEEN << 16 | between[i % BETWEEN];
        memcpy(&x[i], &bits, sizeof x[i]);
        exact[i] = x[i];
    }
    kernel_vector_fill(1, 1, one);
    kernel_linear_forward(COUNT, 1, 1, x, one, NULL, y);
    reference_linear_forward(COUNT, 1, 1, exact, &exact_one, NULL, defined);
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(isnan(defined[i]) ? isnan(y[i])
                                        : fabs(exact[i]) < 0x1p-126 || y[i] == defined[i],
                      "%a becomes %a instead of %a", exact[i], (double)y[i], defined[i]);
    tensor_memory_free(x);
}
END_TEST

/* ---- weights are rounded once ---- */

enum { SIDE = 128, NUMBERS = SIDE * SIDE };
static float *ones, *result, *weights;
static uint16_t *room;

static void allocate(void)
{
    ones = tensor_memory(4 * NUMBERS * sizeof *ones);
    result = ones + NUMBERS;
    weights = result + NUMBERS;
    room = tensor_memory(2 * NUMBERS * sizeof *room);
}

static void release(void)
{
    tensor_memory_free(ones);
    tensor_memory_free(room);
}

static float product_with(const float *weight)
{
    kernel_linear_forward(SIDE, SIDE, SIDE, ones, weight, NULL, result);
    return result[0];
}

static void fill(float *numbers, float value)
{
    kernel_vector_fill(NUMBERS, value, numbers);
}

START_TEST(weights_are_rounded_once_until_they_are_marked_as_changed)
{
    if (!choose())
        return;
    allocate();
    fill(ones, 1);
    fill(weights, 1);
    fill(weights + NUMBERS, 2);
    backend_set_weights(weights, 2 * NUMBERS, room);
    ck_assert(product_with(weights) == SIDE && product_with(weights + NUMBERS) == 2 * SIDE);
    fill(weights, 3);
    ck_assert_msg(product_with(weights) == SIDE, "the rounded weight was not kept");
    backend_set_weights(weights, 2 * NUMBERS, room);
    ck_assert(product_with(weights) == 3 * SIDE && product_with(weights + NUMBERS) == 2 * SIDE);
    kernel_linear_backward_input(SIDE, SIDE, SIDE, ones, weights, result, false);
    ck_assert(result[NUMBERS - 1] == 3 * SIDE);
    release();
}
END_TEST

START_TEST(other_matrices_are_rounded_each_time)
{
    if (!choose())
        return;
    allocate();
    float *other = tensor_memory(NUMBERS * sizeof *other);
    backend_set_weights(weights, 2 * NUMBERS, room);
    fill(ones, 1);
    fill(other, 5);
    ck_assert(product_with(other) == 5 * SIDE);
    fill(other, 7);
    ck_assert(product_with(other) == 7 * SIDE);
    tensor_memory_free(other);
    release();
}
END_TEST

START_TEST(a_matrix_that_will_not_change_is_rounded_once)
{
    if (!choose() || !kernels_run_on_the_host())
        return;
    allocate();
    fill(ones, 1);
    fill(weights, 3);
    backend_round_once(weights);
    ck_assert(product_with(weights) == 3 * SIDE);
    fill(weights, 5);
    kernel_linear_backward_weight(SIDE, SIDE, SIDE, weights, ones, result, false);
    ck_assert_msg(result[0] == 3 * SIDE, "the matrix was rounded again");
    ck_assert(product_with(ones) == SIDE);
    backend_round_once(weights);
    ck_assert(product_with(weights) == 5 * SIDE);
    backend_round_once(NULL);
    fill(weights, 7);
    ck_assert(product_with(weights) == 7 * SIDE);
    release();
}
END_TEST

/* ---- threads ---- */

static int threads_of_this_process(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Runs in a process that never had other threads. */
START_TEST(a_rank_of_one_thread_starts_no_other)
{
    const int before = threads_of_this_process();
    backend_set_threads(1);
    if (!choose())
        return;
    allocate();
    float *x = tensor_memory(2 * 1024 * SIDE * sizeof *x), *y = x + 1024 * SIDE;
    kernel_vector_fill(1024 * SIDE, 1, x);
    kernel_linear_forward(1024, SIDE, SIDE, x, ones, NULL, y);
    if (kernels_run_on_the_host())
        ck_assert_int_eq(threads_of_this_process(), before);
    tensor_memory_free(x);
    release();
}
END_TEST

static TCase *all_kernels(const char *name, void (*choose_it)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, choose_it, both_back_to_fp32);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, forward_matches_its_definition_with_and_without_bias, 0, EACH_TWICE);
    tcase_add_loop_test(tests, backward_input_matches_its_definition_written_or_added, 0,
                        EACH_TWICE);
    tcase_add_loop_test(tests, backward_weight_matches_its_definition_written_or_added, 0,
                        EACH_TWICE);
    tcase_add_test(tests, products_keep_nan_and_infinity);
    tcase_add_test(tests, numbers_round_to_the_nearest_and_ties_to_even);
    tcase_add_test(tests, weights_are_rounded_once_until_they_are_marked_as_changed);
    tcase_add_test(tests, other_matrices_are_rounded_each_time);
    tcase_add_test(tests, a_matrix_that_will_not_change_is_rounded_once);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("products in 16 bits");
    TCase *process = tcase_create("process");
    tcase_add_checked_fixture(process, bf16, both_back_to_fp32);
    tcase_add_test(process, a_rank_of_one_thread_starts_no_other);
    suite_add_tcase(s, process);
    suite_add_tcase(s, all_kernels("bf16", bf16));
    if (kernels_run_on_the_host())
        suite_add_tcase(s, all_kernels("bf16 on two threads", bf16_on_two_threads));
    else
        suite_add_tcase(s, all_kernels("fp16", fp16));
    return s;
}
