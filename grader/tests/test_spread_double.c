/* Expected values, and the distance of single precision from them, which two processes compute
 * together. Runs are made up here. */
#include "backend/backend.h"
#include "grader/judge/grade.h"

#include <check.h> /* after the judge's headers, which also declare fail() */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

Suite *suite(void);

static pid_t test;
static bool second_dies;

/* Two entries: thirds, which single precision rounds, and halves, which it does not. */
static void write_numbers(Stream *stream, const char *name, double number, int count)
{
    Entry *entry = (Entry *)(stream->base + *stream->used);
    *entry = (Entry){.kind = VALUES, .shape = SHAPE(count), .count = count};
    entry->label = label_named(name);
    double *numbers = (double *)(entry + 1);
    for (int i = 0; i < count; i++) {
        numbers[i] = i + 1;
        kernel_vector_scale(1, number, &numbers[i]);
    }
    *stream->used += (int64_t)sizeof *entry + count * (int64_t)sizeof *numbers;
}

void write_expected(const Case *c, int rank, Expectation what, Stream stream)
{
    if (second_dies && getpid() != test)
        raise(SIGKILL);
    write_numbers(&stream, "thirds", 1.0 / 3, 5);
    write_numbers(&stream, "halves", 0.5, 70);
}

static const Entry *entry_called(const Expected *expected, const char *name)
{
    return find_entry(expected->all, VALUES, label_named(name));
}

static void check_spreads(int rounded)
{
    const Case c = {.key = 7, .world = 1, .tp = 1, .pp = 1};
    Expected expected = expect(&c, 0, THE_NUMBERS, rounded);
    const double fifth = 5.0 / 3,
                 spread = expected_spread(&expected, entry_called(&expected, "thirds"));
    ck_assert_double_eq(numbers_of(entry_called(&expected, "thirds"))[4], 5 * (1.0 / 3));
    ck_assert_double_eq(numbers_of(entry_called(&expected, "halves"))[69], 35);
    ck_assert_double_gt(spread, 0);
    ck_assert_double_lt(spread, fifth * 0x1p-23);
    ck_assert_double_eq(expected_spread(&expected, entry_called(&expected, "halves")), 0);
    expected_free(&expected);
}

START_TEST(the_spread_is_the_rounding_error_of_single_precision)
{
    for (int rounded = 1; rounded < 12; rounded++)
        check_spreads(rounded);
}
END_TEST

START_TEST(the_spread_is_the_same_after_ranks_have_run)
{
    check_spreads(3);
    expect_ranks();
    expect_ranks();
    check_spreads(3);
}
END_TEST

START_TEST(the_first_process_does_the_work_if_the_second_dies)
{
    second_dies = true;
    for (int again = 0; again < 3; again++)
        check_spreads(1);
    expect_ranks();
    check_spreads(4);
}
END_TEST

START_TEST(another_expectation_has_no_spread_and_does_not_change_that_of_the_case)
{
    const Case c = {.key = 7, .world = 1, .tp = 1, .pp = 1};
    Expected expected = expect(&c, 0, THE_NUMBERS, 2), past = expect(&c, 0, PAST_THE_LAYER, 0);
    ck_assert_ptr_ne(expected.all.base, past.all.base);
    ck_assert_double_gt(expected_spread(&expected, entry_called(&expected, "thirds")), 0);
    ck_assert_double_eq(expected_spread(&past, entry_called(&past, "thirds")), 0);
    expected_free(&past);
    expected_free(&expected);
}
END_TEST

static void begin(void)
{
    test = getpid();
}

Suite *suite(void)
{
    Suite *s = suite_create("spread");
    TCase *cases = tcase_create("spread");
    tcase_add_checked_fixture(cases, begin, expect_ranks);
    tcase_add_test(cases, the_spread_is_the_rounding_error_of_single_precision);
    tcase_add_test(cases, the_spread_is_the_same_after_ranks_have_run);
    tcase_add_test(cases, the_first_process_does_the_work_if_the_second_dies);
    tcase_add_test(cases, another_expectation_has_no_spread_and_does_not_change_that_of_the_case);
    suite_add_tcase(s, cases);
    return s;
}
