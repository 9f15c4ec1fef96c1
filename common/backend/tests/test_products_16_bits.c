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
    kernel_lookup_forward(TAKEN, WIDTH, ids, (Numbers){.halves = x}, (Numbers){.halves = y});
    backend_wait();
    for (int i = 0; i < TAKEN; i++)
        ck_assert_mem_eq(y + i * WIDTH, x + taken[i] * WIDTH, WIDTH * sizeof *x);
    tensor_memory_free(ids);
    tensor_memory_free(x);
    tensor_memory_free(y);
}
END_TEST

/* ---- arguments and results of both types ---- */

enum { WIDE = 334, MANY = 77 * WIDE };

/* Numbers in 16 bits, and the same in single precision. */
typedef struct Both {
    Numbers narrow, full;
} Both;

static Both both(const char *name, int64_t count)
{
    Both x = {.narrow.halves = tensor_memory((size_t)count * sizeof *x.narrow.halves),
              .full.reals = tensor_memory((size_t)count * sizeof *x.full.reals)};
    for (int64_t i = 0; i < count; i++)
        x.full.reals[i] = (float)sin((double)i * (double)i + (double)name[0]) * 4;
    kernel_round(count, x.full.reals, x.narrow.halves);
    kernel_widen(count, x.narrow.halves, x.full.reals);
    backend_wait();
    return x;
}

static void free_both(Both x)
{
    tensor_memory_free(x.narrow.halves);
    tensor_memory_free(x.full.reals);
}

/* A difference of one rounding; of `beside`, if that was rounded too. */
static void must_be_rounded(const char *what, int64_t count, Both y, double beside)
{
    const double step = precision == FP16 ? 0x1p-11 : 0x1p-8;
    float *is = tensor_memory((size_t)count * sizeof *is);
    kernel_widen(count, y.narrow.halves, is);
    backend_wait();
    for (int64_t i = 0; i < count; i++) {
        const double full = (double)y.full.reals[i];
        ck_assert_msg(fabs((double)is[i] - full) <= 1.01 * step * (fabs(full) + beside) + 0x1p-24,
                      "%s: number %lld is %g, not %g", what, (long long)i, (double)is[i], full);
    }
    tensor_memory_free(is);
}

START_TEST(numbers_widen_to_what_they_were_rounded_to)
{
    if (!choose())
        return;
    enum { ALL = 1 << 16 };
    uint16_t *x = tensor_memory(ALL * sizeof *x), *again = tensor_memory(ALL * sizeof *again);
    float *y = tensor_memory(ALL * sizeof *y);
    static double defined[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = (uint16_t)i;
    kernel_widen(ALL, x, y);
    kernel_round(ALL, y, again);
    backend_wait();
    reference_widen(ALL, x, defined);
    for (int i = 0; i < ALL; i++)
        ck_assert_msg(
            isnan(defined[i]) ? isnan(y[i]) : (double)y[i] == defined[i] && again[i] == x[i],
            "%x becomes %g instead of %g, and %x", x[i], (double)y[i], defined[i], again[i]);
    tensor_memory_free(x);
    tensor_memory_free(again);
    tensor_memory_free(y);
}
END_TEST

START_TEST(a_product_in_16_bits_is_that_in_single_precision_rounded)
{
    if (!choose())
        return;
    const int64_t rows = PRODUCTS[_i / 2][0], out = PRODUCTS[_i / 2][1], in = PRODUCTS[_i / 2][2];
    const Both x = both("x", rows * in), w = both("w", out * in), bias = both("b", out),
               y = both("y", rows * out);
    const real *shift = _i % 2 ? bias.full.reals : NULL;
    kernel_linear_forward(rows, in, out, x.narrow, w.narrow, shift, y.narrow);
    kernel_linear_forward(rows, in, out, x.narrow, w.narrow, shift, y.full);
    must_be_rounded("y", rows * out, y, shift ? 4 : 1e-3);
    const Both dx = both("d", rows * in);
    kernel_linear_backward_input(rows, in, out, y.narrow, w.narrow, dx.narrow, false);
    kernel_linear_backward_input(rows, in, out, y.narrow, w.narrow, dx.full, false);
    must_be_rounded("dx", rows * in, dx, 1e-3);
    free_both(dx);
    free_both(x);
    free_both(w);
    free_both(bias);
    free_both(y);
}
END_TEST

/* The kernels whose tensors have one type. */
enum { OPERATIONS = 10 };
static const char *const operation_names[OPERATIONS] = {"gelu",
                                                        "gelu_tanh",
                                                        "swiglu",
                                                        "rotary",
                                                        "dropout",
                                                        "gelu and dropout",
                                                        "gelu backward",
                                                        "gelu_tanh backward",
                                                        "swiglu backward",
                                                        "gelu and dropout backward"};

static void run_operation(int operation, const uint32_t *kept, Numbers x, Numbers up, Numbers dy,
                          Numbers y, Numbers z)
{
    const Rotary rotary = {1, 77, 1, WIDE, 3, {.theta = 10000}};
    if (operation == 0)
        kernel_gelu_forward(MANY, x, y);
    else if (operation == 1)
        kernel_gelu_tanh_forward(MANY, x, y);
    else if (operation == 2)
        kernel_swiglu_forward(MANY, x, up, y);
    else if (operation == 3)
        kernel_rotary(&rotary, false, x, y);
    else if (operation == 6)
        kernel_gelu_backward(MANY, dy, x, y);
    else if (operation == 7)
        kernel_gelu_tanh_backward(MANY, dy, x, y);
    else if (operation == 8)
        kernel_swiglu_backward(MANY, dy, x, up, y, z);
    else
        kernel_dropout(operation == 4   ? DROPOUT
                       : operation == 5 ? GELU_DROPOUT
                                        : GELU_DROPOUT_BACKWARD,
                       MANY / WIDE, WIDE, 0.3, kept, dy, x, y);
}

START_TEST(operations_in_16_bits_are_those_in_single_precision_rounded)
{
    if (!choose())
        return;
    const Both x = both("x", MANY), up = both("u", MANY), dy = both("d", MANY), y = both("y", MANY),
               z = both("z", MANY);
    uint32_t *kept = tensor_memory((size_t)(MANY / WIDE * dropout_words(WIDE)) * sizeof *kept);
    for (int64_t i = 0; i < MANY / WIDE * dropout_words(WIDE); i++)
        kept[i] = (uint32_t)i * 0x9e3779b9U;
    memset(dy.narrow.halves + 3 * WIDE, 0, WIDE * sizeof *dy.narrow.halves); /* a row of padding */
    memset(dy.full.reals + 3 * WIDE, 0, WIDE * sizeof *dy.full.reals);
    run_operation(_i, kept, x.narrow, up.narrow, dy.narrow, y.narrow, z.narrow);
    run_operation(_i, kept, x.full, up.full, dy.full, y.full, z.full);
    must_be_rounded(operation_names[_i], MANY, y, 1e-5);
    must_be_rounded(operation_names[_i], MANY, z, 1e-5);
    const Both all[] = {x, up, dy, y, z};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_both(all[i]);
    tensor_memory_free(kept);
}
END_TEST

START_TEST(sums_over_rows_in_16_bits_are_those_of_the_same_numbers)
{
    if (!choose())
        return;
    const Both dy = both("d", MANY), sums[] = {both("1", WIDE), both("1", WIDE)};
    kernel_linear_backward_bias(MANY / WIDE, WIDE, dy.narrow, sums[0].full.reals);
    kernel_linear_backward_bias(MANY / WIDE, WIDE, dy.full, sums[1].full.reals);
    backend_wait();
    for (int i = 0; i < WIDE; i++)
        ck_assert_float_eq_tol(sums[0].full.reals[i], sums[1].full.reals[i], 1e-4F);
    free_both(dy);
    free_both(sums[0]);
    free_both(sums[1]);
}
END_TEST

START_TEST(norms_in_16_bits_are_those_in_single_precision_rounded)
{
    if (!choose())
        return;
    const Both x = both("x", MANY), weight = both("w", WIDE), bias = both("b", WIDE),
               y = both("y", MANY), moments[] = {both("m", MANY), both("r", MANY)};
    const Numbers results[] = {y.narrow, y.full};
    for (int i = 0; i < 2; i++)
        kernel_layer_norm_forward(MANY / WIDE, WIDE, x.full.reals, weight.full.reals,
                                  bias.full.reals, 1e-5, results[i], moments[0].full.reals,
                                  moments[1].full.reals);
    must_be_rounded("layer_norm", MANY, y, 1e-5);
    for (int i = 0; i < 2; i++)
        kernel_rms_norm_forward(MANY / WIDE, WIDE, x.full.reals, weight.full.reals, 1e-5,
                                results[i], moments[1].full.reals);
    must_be_rounded("rms_norm", MANY, y, 1e-5);
    const Both all[] = {x, weight, bias, y, moments[0], moments[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_both(all[i]);
}
END_TEST

START_TEST(an_argument_of_a_sum_in_16_bits_is_added_as_it_is)
{
    if (!choose())
        return;
    const Both x = both("x", MANY), y = both("y", MANY), z = both("z", MANY);
    float *first = tensor_memory(MANY * sizeof *first);
    kernel_vector_add(MANY, x.full.reals, y.narrow, first);
    kernel_vector_add(MANY, x.full.reals, y.full, z.full.reals);
    backend_wait();
    ck_assert_mem_eq(first, z.full.reals, MANY * sizeof *first);
    tensor_memory_free(first);
    free_both(x);
    free_both(y);
    free_both(z);
}
END_TEST

START_TEST(rows_in_16_bits_are_added_and_rounded_once)
{
    enum { SUMS = 4001 };
    if (!choose())
        return;
    for (int64_t rows = 1; rows < 5; rows++) {
        const Both x = both("x", rows * SUMS), sums = both("s", SUMS);
        for (int64_t c = 0; c < SUMS; c++) {
            sums.full.reals[c] = 0;
            for (int64_t r = 0; r < rows; r++)
                sums.full.reals[c] += x.full.reals[r * SUMS + c];
        }
        kernel_add_halves(rows, SUMS, x.narrow.halves, sums.narrow.halves);
        must_be_rounded("sum", SUMS, sums, 1e-6);
        kernel_add_halves(rows, SUMS, x.narrow.halves, x.narrow.halves); /* in place */
        backend_wait();
        ck_assert_mem_eq(x.narrow.halves, sums.narrow.halves, SUMS * sizeof *x.narrow.halves);
        free_both(x);
        free_both(sums);
    }
}
END_TEST

START_TEST(rows_of_zeros_in_16_bits_are_found)
{
    enum { OF_ALL = 90 };
    if (!choose() || !backend_looks_for_zeros())
        return;
    const Both x = both("x", OF_ALL * WIDE);
    int32_t *index = tensor_memory(OF_ALL * sizeof *index);
    for (int64_t r = 0; r < OF_ALL; r++)
        for (int64_t c = 0; r % 3 && c < WIDE; c++)
            x.narrow.halves[r * WIDE + c] = c % 2 ? 0x8000 : 0; /* -0 or 0 */
    ck_assert_int_eq(kernel_rows_in_use(OF_ALL, WIDE, x.narrow, index), OF_ALL / 3);
    for (int r = 0; r < OF_ALL / 3; r++)
        ck_assert_int_eq(index[r], 3 * r);
    tensor_memory_free(index);
    free_both(x);
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
    const Numbers narrow = {.halves = ones};
    kernel_linear_forward(1024, SIDE, SIDE, narrow, narrow, NULL, in_full(y));
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
    tcase_add_test(tests, numbers_widen_to_what_they_were_rounded_to);
    tcase_add_loop_test(tests, a_product_in_16_bits_is_that_in_single_precision_rounded, 0,
                        EACH_TWICE);
    tcase_add_loop_test(tests, operations_in_16_bits_are_those_in_single_precision_rounded, 0,
                        OPERATIONS);
    tcase_add_test(tests, sums_over_rows_in_16_bits_are_those_of_the_same_numbers);
    tcase_add_test(tests, norms_in_16_bits_are_those_in_single_precision_rounded);
    tcase_add_test(tests, an_argument_of_a_sum_in_16_bits_is_added_as_it_is);
    tcase_add_test(tests, rows_in_16_bits_are_added_and_rounded_once);
    tcase_add_test(tests, rows_of_zeros_in_16_bits_are_found);
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
