/* Philox against the known answers of its authors (Random123, kat_vectors), and the distributions
 * drawn with it. */
#include <check.h>
#include <math.h>
#include <stdbool.h>

#include "base/philox.h"

static void assert_words(Philox4 got, const uint32_t expected[4])
{
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(got.word[i], expected[i]);
}

START_TEST(the_numbers_equal_those_of_random123)
{
    assert_words(philox((PhiloxKey){{0, 0}}, 0, 0, 0, 0),
                 (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    const uint32_t all = 0xffffffff;
    assert_words(philox((PhiloxKey){{all, all}}, all, all, all, all),
                 (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    assert_words(philox((PhiloxKey){{0xa4093822, 0x299f31d0}}, 0x243f6a88, 0x85a308d3, 0x13198a2e,
                        0x03707344),
                 (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}
END_TEST

static bool same_key(PhiloxKey a, PhiloxKey b)
{
    return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}

START_TEST(seed_name_and_step_each_make_another_key)
{
    PhiloxKey key = philox_key(1, "up.weight", 0);
    ck_assert(same_key(key, philox_key(1, "up.weight", 0)));
    ck_assert(!same_key(key, philox_key(2, "up.weight", 0)));
    ck_assert(!same_key(key, philox_key(1, "up.weighu", 0)));
    ck_assert(!same_key(key, philox_key(1, "up.weight", 1)));
    ck_assert(!same_key(key, philox_key((uint64_t)1 << 40 | 1, "up.weight", 0)));
}
END_TEST

START_TEST(uniform_numbers_are_spread_over_zero_to_one)
{
    enum { COUNT = 100000 };
    PhiloxKey key = philox_key(5, "uniform", 0);
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double u = philox_uniform_at(key, i);
        ck_assert(u >= 0 && u < 1 && u * 0x1p24 == floor(u * 0x1p24));
        sum += u;
        squares += u * u;
    }
    /* five standard deviations of the means */
    ck_assert_double_eq_tol(sum / COUNT, 0.5, 5 * sqrt(1 / 12.0 / COUNT));
    ck_assert_double_eq_tol(squares / COUNT, 1 / 3.0, 5 * sqrt(4 / 45.0 / COUNT));
}
END_TEST

START_TEST(normal_numbers_have_the_moments_of_the_normal_distribution)
{
    enum { COUNT = 100000 };
    PhiloxKey key = philox_key(5, "normal", 0);
    double sum[5] = {0}, neighbours = 0, before = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double x = philox_normal_at(key, i);
        for (int power = 1; power <= 4; power++)
            sum[power] += pow(x, power);
        neighbours += x * before;
        before = x;
    }
    ck_assert_double_eq_tol(sum[1] / COUNT, 0, 5 * sqrt(1.0 / COUNT));
    ck_assert_double_eq_tol(sum[2] / COUNT, 1, 5 * sqrt(2.0 / COUNT));
    ck_assert_double_eq_tol(sum[3] / COUNT, 0, 5 * sqrt(15.0 / COUNT));
    ck_assert_double_eq_tol(sum[4] / COUNT, 3, 5 * sqrt(96.0 / COUNT));
    ck_assert_double_eq_tol(neighbours / COUNT, 0, 5 * sqrt(1.0 / COUNT));
}
END_TEST

START_TEST(an_index_above_32_bits_is_another_number)
{
    PhiloxKey key = philox_key(5, "far", 0);
    ck_assert(philox_uniform_at(key, 3) != philox_uniform_at(key, ((uint64_t)1 << 34) + 3));
    ck_assert(philox_normal_at(key, 3) != philox_normal_at(key, ((uint64_t)1 << 33) + 3));
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *suite = suite_create("philox");
    TCase *tcase = tcase_create("philox");
    tcase_add_test(tcase, the_numbers_equal_those_of_random123);
    tcase_add_test(tcase, seed_name_and_step_each_make_another_key);
    tcase_add_test(tcase, uniform_numbers_are_spread_over_zero_to_one);
    tcase_add_test(tcase, normal_numbers_have_the_moments_of_the_normal_distribution);
    tcase_add_test(tcase, an_index_above_32_bits_is_another_number);
    suite_add_tcase(suite, tcase);
    return suite;
}
