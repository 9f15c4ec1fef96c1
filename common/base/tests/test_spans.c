/* All time between the start and the last span belongs to exactly one span. */
#include <check.h>
#include <string.h>
#include <time.h>

#include "base/spans.h"

Suite *suite(void);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void spend(double seconds)
{
    for (double end = now() + seconds; now() < end;)
        continue;
}

static void from_the_start(void)
{
    spans_run(false);
    spans_forget();
}

START_TEST(a_stopped_clock_counts_nothing)
{
    SpanTotal spans[MAX_SPANS];
    span_end("linear", false);
    ck_assert_int_eq(spans_read(spans), 0);
}
END_TEST

START_TEST(the_time_since_the_last_span_belongs_to_the_next)
{
    SpanTotal spans[MAX_SPANS];
    double begin = now();
    spans_run(true);
    spend(0.004);
    span_end("linear", false);
    spend(0.002);
    span_end("add", true);
    spend(0.004);
    span_end("linear", true);
    spans_run(false);
    double stopped = now();
    spend(0.002);
    double idle = now() - stopped;
    spans_run(true);
    span_end("linear", false);
    double all = now() - begin;
    ck_assert_int_eq(spans_read(spans), 2);
    ck_assert_str_eq(spans[0].what, "linear");
    ck_assert_double_ge(spans[0].seconds[0], 0.004);
    ck_assert_double_ge(spans[0].seconds[1], 0.004);
    ck_assert_double_eq(spans[1].seconds[0], 0);
    ck_assert_double_ge(spans[1].seconds[1], 0.002);
    double sum = spans[0].seconds[0] + spans[0].seconds[1] + spans[1].seconds[1];
    ck_assert_double_ge(sum, 0.010);
    ck_assert_double_le(sum, all - idle +
                                 1e-6); /* for rounding: the times count from the machine's start */
}
END_TEST

static double heard;
static void hear(const char *what, bool backward, double seconds)
{
    if (strcmp(what, "linear") == 0 && backward)
        heard += seconds;
}

START_TEST(a_listener_gets_each_span_with_its_time_until_it_is_removed)
{
    SpanTotal spans[MAX_SPANS];
    heard = 0;
    spans_listen(hear);
    spans_listen(hear); /* has no effect */
    span_end("linear", true);
    spans_run(true);
    for (int i = 0; i < 3; i++) {
        span_end("linear", true);
        span_end("linear", false);
    }
    spans_unlisten(hear);
    spans_read(spans);
    ck_assert_double_gt(heard, 0);
    ck_assert_double_eq(spans[0].seconds[1], heard);
    span_end("linear", true);
    spans_read(spans);
    ck_assert_double_gt(spans[0].seconds[1], heard);
}
END_TEST

static int spans_counted;
static void count(const char *what, bool backward, double seconds)
{
    spans_counted++;
}

START_TEST(two_listeners_get_the_same_spans_and_one_may_be_removed)
{
    heard = spans_counted = 0;
    spans_listen(hear);
    spans_listen(count);
    spans_run(true);
    span_end("linear", true);
    double first = heard;
    ck_assert_double_gt(first, 0);
    ck_assert_int_eq(spans_counted, 1);
    spans_unlisten(hear);
    span_end("linear", true);
    ck_assert_double_eq(heard, first);
    ck_assert_int_eq(spans_counted, 2);
    spans_unlisten(count);
}
END_TEST

START_TEST(names_beyond_the_table_share_its_last_row)
{
    static char names[MAX_SPANS + 9][8];
    SpanTotal spans[MAX_SPANS];
    spans_run(true);
    for (int i = 0; i < MAX_SPANS + 9; i++) {
        names[i][0] = (char)('a' + i / 26);
        names[i][1] = (char)('a' + i % 26);
        span_end(names[i], false);
    }
    ck_assert_int_eq(spans_read(spans), MAX_SPANS);
    ck_assert_str_eq(spans[MAX_SPANS - 1].what, names[MAX_SPANS - 1]);
    spans_forget();
    ck_assert_int_eq(spans_read(spans), 0);
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("spans");
    TCase *tcase = tcase_create("spans");
    tcase_add_checked_fixture(tcase, from_the_start, NULL);
    tcase_add_test(tcase, a_stopped_clock_counts_nothing);
    tcase_add_test(tcase, the_time_since_the_last_span_belongs_to_the_next);
    tcase_add_test(tcase, a_listener_gets_each_span_with_its_time_until_it_is_removed);
    tcase_add_test(tcase, two_listeners_get_the_same_spans_and_one_may_be_removed);
    tcase_add_test(tcase, names_beyond_the_table_share_its_last_row);
    suite_add_tcase(all, tcase);
    return all;
}
