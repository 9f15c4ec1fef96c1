/* Products in tf32, which only GPUs have: the kit rounds nothing. */
#include "backend/tests/precisions.h"

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
    kernel_linear_forward(rows, inner, columns, in_full(x), in_full(w), NULL, in_full(y));
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

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("products in tf32");
    TCase *tests = tcase_create("tf32");
    tcase_add_checked_fixture(tests, tf32, back_to_fp32);
    tcase_add_loop_test(tests, the_error_of_tf32_is_at_most_that_of_the_bits_it_drops, 1, 12);
    suite_add_tcase(s, tests);
    return s;
}
