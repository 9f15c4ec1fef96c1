/* The reference backend's rounding mode: what it rounds, and in which order it sums. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/reference/rounding.h"

START_TEST(exact_mode_sums_in_the_order_of_the_index)
{
    const double x[] = {0x1p53, 1, 1}, ones[] = {1, 1, 1};
    for (int call = 0; call < 20; call++) {
        double y = 0;
        kernel_linear_forward(1, 3, 1, in_full(x), in_full(ones), NULL, in_full(&y));
        ck_assert_double_eq(y, 0x1p53); /* adding the ones first would give 2^53 + 2 */
    }
}
END_TEST

/* In single precision, 2^24 + 1 + 1 is 2^24 from left to right, and 2^24 + 2 if the ones are added
 * first. */
START_TEST(rounding_mode_rounds_each_sum_and_each_product)
{
    const double x[] = {0x1p24, 1, 1}, ones[] = {1, 1, 1}, third = 1.0 / 3;
    double y = 0;
    kernel_linear_forward(1, 3, 1, in_full(x), in_full(ones), NULL, in_full(&y));
    ck_assert_double_eq(y, 0x1p24 + 2);
    bool orders[2] = {false, false};
    for (uint64_t seed = 1; seed < 40; seed++) {
        reference_round_like_fp32(seed);
        kernel_linear_forward(1, 3, 1, in_full(x), in_full(ones), NULL, in_full(&y));
        ck_assert(y == 0x1p24 || y == 0x1p24 + 2); /* ones added one by one, or together */
        orders[y == 0x1p24] = true;
        double w = 1;
        kernel_vector_scale(1, third, &w);
        ck_assert_double_eq(w, (float)third);
    }
    ck_assert(orders[0] && orders[1]);
    reference_round_like_fp32(0);
    kernel_linear_forward(1, 3, 1, in_full(x), in_full(ones), NULL, in_full(&y));
    ck_assert_double_eq(y, 0x1p24 + 2);
}
END_TEST

START_TEST(products_are_rounded_to_16_bits_but_tf32_is_refused)
{
    enum { SIDE = 128 };
    static double x[SIDE * SIDE], w[SIDE * SIDE], y[SIDE * SIDE];
    static uint16_t rounded_x[SIDE * SIDE], rounded_w[SIDE * SIDE];
    const struct {
        Precision precision;
        double rounded; /* 1 + 2^-9 + 2^-12 */
    } good[] = {{BF16, 1}, {FP16, 1 + 0x1p-9}};
    Problem problem;
    for (int i = 0; i < SIDE; i++) {
        x[i * SIDE + i] = 1 + 0x1p-9 + 0x1p-12;
        w[i * SIDE + i] = 1;
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert(backend_set_products(good[i].precision, SIDE, &problem));
        ck_assert(backend_products() == good[i].precision && is_in_16_bits(BF16_LEAST));
        kernel_round(SIDE * SIDE, x, rounded_x);
        kernel_round(SIDE * SIDE, w, rounded_w);
        kernel_linear_forward(SIDE, SIDE, SIDE, (Numbers){.halves = rounded_x},
                              (Numbers){.halves = rounded_w}, NULL, in_full(y));
        ck_assert_double_eq(y[0], good[i].rounded);
        ck_assert(!backend_set_products(TF32, SIDE, &problem));
        ck_assert_str_eq(problem.what, "AMP=tf32 needs a GPU");
        ck_assert(backend_products() == FP32 && !is_in_16_bits(BF16_LEAST));
    }
}
END_TEST

/* Two products that cancel except for a rounding error: rounding (1 + 2^-23)² loses 2^-46; the
 * other product, -(1 + 2^-22), is exact. */
START_TEST(rounding_mode_rounds_products_that_are_added_or_fuses_them)
{
    const double e = 0x1p-23, x[] = {1 + e, 1 + 2 * e}, w[] = {1 + e, -1};
    bool fused[2] = {false, false};
    for (uint64_t seed = 1; seed < 40; seed++) {
        double y = 0;
        reference_round_like_fp32(seed);
        kernel_linear_forward(1, 2, 1, in_full(x), in_full(w), NULL, in_full(&y));
        reference_round_like_fp32(0);
        ck_assert(y == 0 || y == e * e);
        fused[y != 0] = true;
    }
    ck_assert(fused[0] && fused[1]);
}
END_TEST

/* Sums of small integers are the same in every order and precision. */
START_TEST(products_of_integers_are_exact_in_both_modes)
{
    enum { MOST = 19 };
    double x[MOST * MOST], w[MOST * MOST], y[MOST * MOST + 1];
    for (int i = 0; i < MOST * MOST; i++) {
        x[i] = i * 5 % 7 - 3;
        w[i] = i * 3 % 11 - 5;
    }
    for (int shape = 0; shape < MOST * MOST * 6; shape++) {
        const int rows = 1 + shape % MOST, out = 1 + shape / MOST % MOST,
                  in = 1 + 3 * (shape / MOST / MOST);
        for (uint64_t seed = 0; seed < 2; seed++) {
            bool whole = true;
            reference_round_like_fp32(seed);
            y[rows * out] = 0.5;
            kernel_linear_forward(rows, in, out, in_full(x), in_full(w), NULL, in_full(y));
            reference_round_like_fp32(0);
            for (int i = 0; i < rows * out; i++) {
                double sum = 0;
                for (int k = 0; k < in; k++)
                    sum += x[i / out * in + k] * w[i % out * in + k];
                whole = whole && y[i] == sum;
            }
            ck_assert_msg(whole && y[rows * out] == 0.5, "%d rows, %d in, %d out", rows, in, out);
        }
    }
}
END_TEST

START_TEST(rounding_mode_changes_the_order_with_each_call_and_repeats_with_the_seed)
{
    enum { COUNT = 100 };
    double x[COUNT], ones[COUNT], y[2][20];
    const PhiloxKey key = philox_key(1, "order", 0);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)philox_normal_at(key, (uint64_t)i);
        ones[i] = 1;
    }
    for (int n = 0; n < 2; n++) {
        reference_round_like_fp32(9);
        for (int call = 0; call < 20; call++)
            kernel_linear_forward(1, COUNT, 1, in_full(x), in_full(ones), NULL,
                                  in_full(&y[n][call]));
    }
    reference_round_like_fp32(0);
    int changes = 0;
    for (int call = 1; call < 20; call++)
        changes += y[0][call] != y[0][call - 1];
    ck_assert_int_ge(changes, 10);
    ck_assert_mem_eq(y[0], y[1], sizeof y[0]);
}
END_TEST

/* Every number of bf16, and numbers between it and the next one. */
START_TEST(numbers_round_to_the_nearest_bf16_and_ties_to_even)
{
    enum { BETWEEN = 8 };
    static const uint32_t between[BETWEEN] = {0, 1, 0x4000, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff};
    reference_set_products(BF16);
    for (uint32_t i = 0; i < BETWEEN << 16; i++) {
        const uint32_t low = between[i % BETWEEN], upper = i / BETWEEN, bits = upper << 16 | low;
        float number;
        memcpy(&number, &bits, sizeof number);
        const double x = number;
        uint16_t y;
        kernel_round(1, &x, &y);
        const uint32_t expected = upper + (low > 0x8000 || (low == 0x8000 && upper % 2 == 1));
        ck_assert_msg(isnan(x) ? (y & 0x7fff) > 0x7f80 : y == expected, "%a becomes %x", x, y);
    }
    reference_set_products(FP32);
}
END_TEST

/* A product with 1 returns the number. */
START_TEST(numbers_in_fp16_are_its_own)
{
    static const struct {
        double x;
        uint16_t bits;
        double near;
    } some[] = {{1, 0x3c00, 1},
                {-2, 0xc000, -2},
                {65504, 0x7bff, 65504},
                {65519, 0x7bff, 65504},
                {65520, 0x7c00, INFINITY},
                {0x1p-14, 0x0400, 0x1p-14},
                {0x1p-24, 0x0001, 0x1p-24},
                {0x1p-25, 0x0000, 0},
                {0x1.8p-24, 0x0002, 0x1p-23},
                {0x1.ffep-15, 0x0400, 0x1p-14},
                {1 + 0x1p-11, 0x3c00, 1},
                {1 + 0x3p-11, 0x3c02, 1 + 0x1p-9},
                {0, 0x0000, 0},
                {-INFINITY, 0xfc00, -INFINITY}};
    static const double one = 1;
    reference_set_products(FP16);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        uint16_t bits, one_in_16;
        double y = 0;
        kernel_round(1, &some[i].x, &bits);
        kernel_round(1, &one, &one_in_16);
        ck_assert_int_eq(bits, some[i].bits);
        kernel_linear_forward(1, 1, 1, (Numbers){.halves = &bits}, (Numbers){.halves = &one_in_16},
                              NULL, in_full(&y));
        ck_assert_double_eq(y, some[i].near);
    }
    reference_set_products(FP32);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("reference backend: rounding");
    TCase *tests = tcase_create("rounding");
    tcase_add_test(tests, exact_mode_sums_in_the_order_of_the_index);
    tcase_add_test(tests, rounding_mode_rounds_each_sum_and_each_product);
    tcase_add_test(tests, products_are_rounded_to_16_bits_but_tf32_is_refused);
    tcase_add_test(tests, rounding_mode_rounds_products_that_are_added_or_fuses_them);
    tcase_add_test(tests, products_of_integers_are_exact_in_both_modes);
    tcase_add_test(tests, rounding_mode_changes_the_order_with_each_call_and_repeats_with_the_seed);
    tcase_add_test(tests, numbers_round_to_the_nearest_bf16_and_ties_to_even);
    tcase_add_test(tests, numbers_in_fp16_are_its_own);
    suite_add_tcase(s, tests);
    return s;
}
