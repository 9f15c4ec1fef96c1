/* Consecutive products: a matrix rounded for one is not rounded again for the next unless it has
 * changed. With TF32, the kit rounds nothing. */
#include "backend/tests/precisions.h"

/* ---- copies outlive a product, but no change ---- */

enum { SIDE = 128, NUMBERS = SIDE * SIDE };
static float *ones, *result, *weights, *source;

static void allocate(void)
{
    ones = tensor_memory(4 * NUMBERS * sizeof *ones);
    result = ones + NUMBERS;
    weights = result + NUMBERS;
    source = weights + NUMBERS;
}

static void release(void)
{
    tensor_memory_free(ones);
}

static void fill(float *numbers, float value)
{
    kernel_vector_fill(NUMBERS, value, numbers);
}

static void product_of_ones(void)
{
    kernel_linear_forward(SIDE, SIDE, SIDE, ones, weights, NULL, result);
}

static void change_by_a_kernel(float value)
{
    fill(ones, value);
}

static void change_by_a_copy(float value)
{
    (void)value;
    kernel_vector_copy(NUMBERS, source, ones);
}

static void change_by_writing(float value)
{
    float *numbers = malloc(NUMBERS * sizeof *numbers);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = value;
    backend_write(ones, numbers, (int64_t)(NUMBERS * sizeof *numbers));
    free(numbers);
}

static void change_by_setting_bytes(float value)
{
    (void)value;
    backend_set_bytes(ones, 0, (int64_t)(NUMBERS * sizeof *ones));
}

static void change_by_the_host(float value)
{
    backend_wait();
    for (int i = 0; i < NUMBERS; i++)
        ones[i] = value;
}

/* The host changes a matrix through a pointer, between two products. */
static void change_where_kernels_wait(float value)
{
    backend_wait_always(true);
    for (int again = 0; again < 2; again++)
        product_of_ones();
    for (int i = 0; i < NUMBERS; i++)
        ones[i] = value;
}

/* The product of `source` and `weights`, which are 1, overwrites the matrix. */
static void change_by_a_product(float value)
{
    (void)value;
    kernel_linear_forward(SIDE, SIDE, SIDE, source, weights, NULL, ones);
}

/* Changes only the last rows of a matrix that the previous product has read. */
static void change_in_part(float value)
{
    kernel_vector_fill(NUMBERS / 2, value, ones);
    product_of_ones();
    kernel_vector_fill(NUMBERS / 2, value, ones + NUMBERS / 2);
}

static const struct {
    void (*change)(float value);
    float to, source;
} CHANGES[] = {{change_by_a_kernel, 3, 0}, {change_by_a_copy, 3, 3},
               {change_by_writing, 3, 0},  {change_by_setting_bytes, 0, 0},
               {change_by_the_host, 3, 0}, {change_by_a_product, 3, 3.0F / SIDE},
               {change_in_part, 3, 0},     {change_where_kernels_wait, 3, 0}};

START_TEST(a_matrix_that_was_changed_between_two_products_is_rounded_again)
{
    if (!choose())
        return;
    allocate();
    backend_wait_always(false);
    fill(weights, 1);
    fill(ones, 1);
    fill(source, CHANGES[_i].source);
    for (int again = 0; again < 2; again++)
        product_of_ones();
    CHANGES[_i].change(CHANGES[_i].to);
    product_of_ones();
    backend_wait();
    for (int i = 0; i < NUMBERS; i++)
        ck_assert_msg(result[i] == SIDE * CHANGES[_i].to, "number %d is %g", i, (double)result[i]);
    release();
}
END_TEST

START_TEST(copies_of_many_matrices_are_not_confused)
{
    enum { MATRICES = 6 };
    float *each[MATRICES];
    if (!choose())
        return;
    allocate();
    fill(weights, 1);
    for (int i = 0; i < MATRICES; i++) {
        each[i] = tensor_memory(NUMBERS * sizeof *each[i]);
        kernel_vector_fill(NUMBERS, i, each[i]);
    }
    backend_wait_always(false);
    for (int i = 0; i < 4 * MATRICES; i++) {
        const int which = (i * i + i / 3) % MATRICES; /* repeats some immediately, some later */
        kernel_linear_forward(SIDE, SIDE, SIDE, each[which], weights, NULL, result);
        kernel_linear_backward_weight(SIDE, SIDE, SIDE, each[which], weights, ones, false);
        backend_wait();
        ck_assert(result[0] == (float)(SIDE * which));
    }
    for (int i = 0; i < MATRICES; i++)
        tensor_memory_free(each[i]);
    release();
}
END_TEST

/* ---- tf32 ---- */

/* Each factor is off by at most 2^-10, whether truncated or rounded. */
START_TEST(the_error_of_tf32_is_at_most_that_of_the_bits_it_drops)
{
    if (!choose())
        return;
    const int64_t rows = 7 * _i, columns = 5 * _i + 1, inner = 50 * _i + 1;
    float *x = tensor_memory((size_t)(rows * inner) * sizeof *x),
          *w = tensor_memory((size_t)(columns * inner) * sizeof *w);
    float *y = tensor_memory((size_t)(rows * columns) * sizeof *y);
    bool any = false;
    for (int64_t i = 0; i < rows * inner; i++)
        x[i] = (float)philox_normal_at(philox_key(1, "x", 0), (uint64_t)i);
    for (int64_t i = 0; i < columns * inner; i++)
        w[i] = (float)philox_normal_at(philox_key(1, "w", 0), (uint64_t)i);
    kernel_linear_forward(rows, inner, columns, x, w, NULL, y);
    for (int64_t i = 0; i < rows * columns; i++) {
        double exact = 0, size = 0;
        for (int64_t k = 0; k < inner; k++) {
            const double product = (double)x[i / columns * inner + k] * w[i % columns * inner + k];
            exact += product;
            size += fabs(product);
        }
        ck_assert_double_le(fabs(y[i] - exact), (0x1p-9 + 0x1p-17) * size);
        any = any || fabs(y[i] - exact) > 0x1p-20 * size;
    }
    ck_assert_msg(any, "these are products in single precision");
    tensor_memory_free(x);
    tensor_memory_free(w);
    tensor_memory_free(y);
}
END_TEST

static TCase *copies_in(const char *name, void (*choose_it)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, choose_it, back_to_fp32);
    tcase_add_loop_test(tests, a_matrix_that_was_changed_between_two_products_is_rounded_again, 0,
                        sizeof CHANGES / sizeof *CHANGES);
    tcase_add_test(tests, copies_of_many_matrices_are_not_confused);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("copies for products");
    suite_add_tcase(s, copies_in("bf16", bf16));
    if (kernels_run_on_the_host())
        return s;
    suite_add_tcase(s, copies_in("fp16", fp16));
    TCase *tests = tcase_create("tf32");
    tcase_add_checked_fixture(tests, tf32, back_to_fp32);
    tcase_add_loop_test(tests, the_error_of_tf32_is_at_most_that_of_the_bits_it_drops, 1, 12);
    suite_add_tcase(s, tests);
    return s;
}
