/* The matrix products and the embedding's lookup against their definitions. */
#include "backend/tests/products.h"

static void call_linear_backward_weight(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_linear_backward_weight(c->rows, c->columns, c->inner, in_double(t[0].number),
                                         in_double(t[1].number), t[2].number, c->accumulate);
    else
        kernel_linear_backward_weight(c->rows, c->columns, c->inner, in_full(t[0].single),
                                      in_full(t[1].single), t[2].single, c->accumulate);
}

/* Every size of the result except the largest, and one that threads share; each with two inner
 * sizes, with and without `accumulate`. */
enum { SMALL = SIZES - COLUMN_SIZES, SHARED = SMALL + 4, PRODUCTS = 4 * (SMALL + 1) };

static Comparison product_of(const char *kernel, int size)
{
    static const int64_t inner[] = {1, 36};
    Comparison c = comparison_of(kernel, size / 4 < SMALL ? size / 4 : SHARED);
    c.inner = inner[size % 2];
    c.accumulate = size / 2 % 2 == 1;
    return c;
}

START_TEST(linear_forward_matches_its_definition_with_and_without_bias)
{
    compare_linear_forward(product_of("linear_forward", _i), call_linear_forward);
}
END_TEST

START_TEST(linear_backward_input_matches_its_definition_written_or_added)
{
    compare_linear_backward_input(product_of("linear_backward_input", _i),
                                  call_linear_backward_input);
}
END_TEST

START_TEST(linear_backward_weight_matches_its_definition_written_or_added)
{
    Comparison c = product_of("linear_backward_weight", _i);
    add_twin(&c, c.rows * c.inner, NORMAL);
    add_twin(&c, c.rows * c.columns, NORMAL);
    add_twin(&c, c.inner * c.columns, c.accumulate ? NORMAL : JUNK);
    compare(&c, call_linear_backward_weight);
}
END_TEST

static void call_linear_backward_bias(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_linear_backward_bias(c->rows, c->columns, in_double(t[0].number), t[1].number);
    else
        kernel_linear_backward_bias(c->rows, c->columns, in_full(t[0].single), t[1].single);
}

START_TEST(linear_backward_bias_adds_column_sums)
{
    Comparison c = comparison_of("linear_backward_bias", _i);
    add_twin(&c, c.rows * c.columns, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    compare(&c, call_linear_backward_bias);
}
END_TEST

enum { TABLE_ROWS = 11 };

static void call_lookup_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_lookup_forward(c->rows, c->columns, c->ids, in_double(t[0].number),
                                 in_double(t[1].number));
    else
        kernel_lookup_forward(c->rows, c->columns, c->ids, in_full(t[0].single),
                              in_full(t[1].single));
}

static void call_lookup_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_lookup_backward(c->rows, c->columns, c->ids, t[0].number, t[1].number);
    else
        kernel_lookup_backward(c->rows, c->columns, c->ids, t[0].single, t[1].single);
}

/* Repeated rows, the first and the last one, and NO_ID. */
static void fill_ids(int64_t count, int32_t *ids)
{
    for (int64_t i = 0; i < count; i++)
        ids[i] = i % 5 == 2 ? NO_ID : i % 7 == 3 ? TABLE_ROWS - 1 : (int32_t)(i * i % TABLE_ROWS);
}

START_TEST(lookup_forward_copies_rows_and_gives_zeros_for_no_id)
{
    int32_t *ids = tensor_memory(301 * sizeof *ids);
    Comparison c = comparison_of("lookup_forward", _i);
    fill_ids(c.rows, ids);
    c.ids = ids;
    add_twin(&c, TABLE_ROWS * c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, JUNK);
    compare(&c, call_lookup_forward);
    tensor_memory_free(ids);
}
END_TEST

START_TEST(lookup_backward_adds_to_the_rows_looked_up_and_to_no_other)
{
    int32_t *ids = tensor_memory(301 * sizeof *ids);
    Comparison c = comparison_of("lookup_backward", _i);
    fill_ids(c.rows, ids);
    c.ids = ids;
    add_twin(&c, c.rows * c.columns, NORMAL);
    add_twin(&c, TABLE_ROWS * c.columns, NORMAL);
    compare(&c, call_lookup_backward);
    tensor_memory_free(ids);
}
END_TEST

START_TEST(lookup_backward_adds_in_the_order_of_the_ids)
{
    /* 1 + 2^24 - 2^24 is 0 in single precision from left to right, and 1 in the other order. */
    int32_t *ids = tensor_memory(3 * sizeof *ids);
    float *dy = tensor_memory(4 * sizeof *dy), *dtable = dy + 3;
    memset(ids, 0, 3 * sizeof *ids);
    memcpy(dy, (const float[]){1, 0x1p24f, -0x1p24f, 0}, 4 * sizeof *dy);
    kernel_lookup_backward(3, 1, ids, dy, dtable);
    ck_assert(dtable[0] == 0);
    tensor_memory_free(ids);
    tensor_memory_free(dy);
}
END_TEST

START_TEST(rows_in_use_are_those_with_a_nonzero_element)
{
    enum { ROWS_HERE = 301, COLUMNS_HERE = 24 };
    int32_t index[ROWS_HERE];
    if (!kernels_run_on_the_host())
        return;
    Comparison c = {.kernel = "rows in use"};
    make_zeros(add_twin(&c, ROWS_HERE * COLUMNS_HERE, NORMAL), _i, ROWS_HERE, 43);
    int64_t found = kernel_rows_in_use(ROWS_HERE, COLUMNS_HERE, in_full(c.twins[0].start), index),
            expected = 0;
    for (int64_t r = 0; r < ROWS_HERE; r++)
        if (is_in_use(_i, ROWS_HERE, 43, r)) {
            ck_assert_int_lt(expected, found);
            ck_assert_int_eq(index[expected++], r);
        }
    ck_assert_int_eq(found, expected);
    free_twins(&c);
}
END_TEST

START_TEST(a_row_with_one_nonzero_number_is_in_use)
{
    enum { ROWS_HERE = 4, COLUMNS_HERE = 37, IN_USE = 2 }; /* two cache lines and a part */
    int32_t index[ROWS_HERE];
    if (!kernels_run_on_the_host())
        return;
    float *x = tensor_memory(ROWS_HERE * COLUMNS_HERE * sizeof *x);
    kernel_vector_fill(ROWS_HERE * COLUMNS_HERE, -0.0, x);
    x[IN_USE * COLUMNS_HERE + _i] = _i % 2 ? NAN : 0x1p-149F;
    ck_assert_int_eq(kernel_rows_in_use(ROWS_HERE, COLUMNS_HERE, in_full(x), index), 1);
    ck_assert_int_eq(index[0], IN_USE);
    tensor_memory_free(x);
}
END_TEST

START_TEST(no_row_is_left_out_if_nearly_all_are_in_use)
{
    int32_t index[301];
    if (!kernels_run_on_the_host())
        return;
    Comparison c = {.kernel = "rows in use"};
    Twin *x = add_twin(&c, 301 * 5, NORMAL);
    ck_assert_int_eq(kernel_rows_in_use(301, 5, in_full(x->start), index), 301);
    memset(x->start + 300 * 5, 0, 5 * sizeof(float));
    ck_assert_int_eq(kernel_rows_in_use(301, 5, in_full(x->start), index), 301);
    ck_assert_int_eq(kernel_rows_in_use(0, 5, in_full(x->start), index), 0);
    ck_assert_int_eq(kernel_rows_in_use(1, 5, in_full(x->start + 300 * 5), index), 0);
    free_twins(&c);
}
END_TEST

START_TEST(nan_spreads_to_everything_that_depends_on_it)
{
    Comparison product = comparison_of("linear_forward", _i);
    product.inner = 36;
    add_twin(&product, product.rows * product.inner, NORMAL)
        ->start[product.rows * product.inner / 2] = NAN;
    add_twin(&product, product.columns * product.inner, NORMAL);
    add_twin(&product, product.columns, NORMAL);
    add_twin(&product, product.rows * product.columns, JUNK);
    compare(&product, call_linear_forward);
}
END_TEST

static TCase *all_kernels(const char *name, void (*set_threads)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_threads, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, linear_forward_matches_its_definition_with_and_without_bias, 0,
                        PRODUCTS);
    tcase_add_loop_test(tests, linear_backward_input_matches_its_definition_written_or_added, 0,
                        PRODUCTS);
    tcase_add_loop_test(tests, linear_backward_weight_matches_its_definition_written_or_added, 0,
                        PRODUCTS);
    tcase_add_loop_test(tests, linear_backward_bias_adds_column_sums, 0, SIZES);
    tcase_add_loop_test(tests, lookup_forward_copies_rows_and_gives_zeros_for_no_id, 0, SIZES);
    tcase_add_loop_test(tests, lookup_backward_adds_to_the_rows_looked_up_and_to_no_other, 0,
                        SIZES);
    tcase_add_test(tests, lookup_backward_adds_in_the_order_of_the_ids);
    tcase_add_loop_test(tests, rows_in_use_are_those_with_a_nonzero_element, 0, ZERO_PATTERNS);
    tcase_add_loop_test(tests, a_row_with_one_nonzero_number_is_in_use, 0, 37);
    tcase_add_test(tests, no_row_is_left_out_if_nearly_all_are_in_use);
    tcase_add_loop_test(tests, nan_spreads_to_everything_that_depends_on_it, 0, SIZES);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("kernels: matrix products and lookup");
    suite_add_tcase(s, all_kernels("one thread", one_thread));
    if (kernels_run_on_the_host())
        suite_add_tcase(s, all_kernels("two threads", two_threads));
    return s;
}
