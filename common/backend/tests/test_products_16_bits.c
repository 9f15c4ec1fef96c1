/* Matrix products in bf16, and on GPUs in fp16, compared with their definition: rounded arguments,
 * everything else in double precision. */
#include <dirent.h>

#include "backend/tests/products.h"

/* rows, columns of the result, inner size: odd ones, and those of the model. */
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
    compare_linear_forward(product_of("linear_forward_16", _i), call_linear_forward_16);
}
END_TEST

START_TEST(backward_input_matches_its_definition_written_or_added)
{
    if (!choose())
        return;
    compare_linear_backward_input(product_of("linear_backward_input_16", _i),
                                  call_linear_backward_input_16);
}
END_TEST

START_TEST(backward_weight_matches_its_definition_written_or_added)
{
    if (!choose())
        return;
    compare_backward_weight(product_of("linear_backward_weight_16", _i), call_backward_weight_16);
}
END_TEST

START_TEST(products_keep_nan_and_infinity)
{
    if (!choose())
        return;
    Comparison c = {.kernel = "linear_forward_16", .rows = 128, .columns = 64, .inner = 64};
    Twin *x = add_twin(&c, c.rows * c.inner, NORMAL);
    x->start[NAN_AT] = NAN;
    x->start[2 * NAN_AT] = INFINITY;
    x->start[3 * NAN_AT] = 3.4e38F; /* rounds to infinity */
    add_twin(&c, c.columns * c.inner, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, JUNK);
    compare(&c, call_linear_forward_16);
}
END_TEST

START_TEST(numbers_round_to_the_nearest_and_ties_to_even)
{
    enum { BETWEEN = 12, COUNT = BETWEEN << 16 };
    static const uint32_t between[BETWEEN] = {0,      1,      0x0fff, 0x1000, 0x1001, 0x3000,
                                              0x4000, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff};
    static double exact[COUNT];
    static uint16_t defined[COUNT];
    if (!choose())
        return;
    float *x = tensor_memory(COUNT * sizeof *x);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bits = i / BETWEEN << 16 | between[i % BETWEEN];
        memcpy(&x[i], &bits, sizeof x[i]);
        exact[i] = x[i];
    }
    uint16_t *y = rounded_of(COUNT, x);
    backend_wait();
    reference_round(COUNT, exact, defined);
    const int infinity = precision == FP16 ? 0x7c00 : 0x7f80;
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(isnan(exact[i]) ? (y[i] & 0x7fff) > infinity : y[i] == defined[i],
                      "%a becomes %x instead of %x", exact[i], y[i], defined[i]);
    tensor_memory_free(x);
    tensor_memory_free(y);
}
END_TEST

START_TEST(rows_in_16_bits_are_looked_up)
{
    enum { OF_TABLE = 5, WIDTH = 77, TAKEN = 3 };
    static const int32_t taken[TAKEN] = {4, 0, 4};
    if (!choose())
        return;
    int32_t *ids = tensor_memory(sizeof taken);
    memcpy(ids, taken, sizeof taken);
    uint16_t *x = tensor_memory(OF_TABLE * WIDTH * sizeof *x),
             *y = tensor_memory(TAKEN * WIDTH * sizeof *y);
    for (int i = 0; i < OF_TABLE * WIDTH; i++)
        x[i] = (uint16_t)(1000 * i);
    kernel_lookup_forward_16(TAKEN, WIDTH, ids, x, y);
    backend_wait();
    for (int i = 0; i < TAKEN; i++)
        ck_assert_mem_eq(y + i * WIDTH, x + taken[i] * WIDTH, WIDTH * sizeof *x);
    tensor_memory_free(ids);
    tensor_memory_free(x);
    tensor_memory_free(y);
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
    enum { SIDE = 128 };
    float *x = tensor_memory(2 * 1024 * SIDE * sizeof *x), *y = x + 1024 * SIDE;
    kernel_vector_fill(1024 * SIDE, 1, x);
    uint16_t *ones = rounded_of(1024 * SIDE, x);
    kernel_linear_forward_16(1024, SIDE, SIDE, ones, ones, NULL, y);
    if (kernels_run_on_the_host())
        ck_assert_int_eq(threads_of_this_process(), before);
    tensor_memory_free(x);
    tensor_memory_free(ones);
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
    tcase_add_test(tests, rows_in_16_bits_are_looked_up);
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
