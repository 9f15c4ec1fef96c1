/* Every moment between the start and the last word belongs to one word. */
#include <check.h>
#include <string.h>
#include <time.h>

#include "base/laps.h"

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
    laps_run(false);
    laps_forget();
}

START_TEST(what_is_not_running_counts_nothing)
{
    Lap laps[MAX_LAPS];
    lap("linear", false);
    ck_assert_int_eq(laps_read(laps), 0);
}
END_TEST

START_TEST(the_time_since_the_last_word_belongs_to_the_next)
{
    Lap laps[MAX_LAPS];
    double begin = now();
    laps_run(true);
    spend(0.004);
    lap("linear", false);
    spend(0.002);
    lap("add", true);
    spend(0.004);
    lap("linear", true);
    laps_run(false);
    double stopped = now();
    spend(0.002);
    double idle = now() - stopped;
    laps_run(true);
    lap("linear", false);
    double all = now() - begin;
    ck_assert_int_eq(laps_read(laps), 2);
    ck_assert_str_eq(laps[0].what, "linear");
    ck_assert_double_ge(laps[0].seconds[0], 0.004);
    ck_assert_double_ge(laps[0].seconds[1], 0.004);
    ck_assert_double_eq(laps[1].seconds[0], 0);
    ck_assert_double_ge(laps[1].seconds[1], 0.002);
    double sum = laps[0].seconds[0] + laps[0].seconds[1] + laps[1].seconds[1];
    ck_assert_double_ge(sum, 0.010);
    ck_assert_double_le(sum, all - idle +
                                 1e-6); /* what differences of times since the machine's start round off */
}
END_TEST

static double heard;
static void hear(const char *what, bool backward, double seconds)
{
    if (strcmp(what, "linear") == 0 && backward)
        heard += seconds;
}

START_TEST(a_listener_hears_each_word_with_its_time_until_there_is_none)
{
    Lap laps[MAX_LAPS];
    heard = 0;
    laps_tell(hear);
    laps_tell(hear); /* once */
    lap("linear", true);
    laps_run(true);
    for (int i = 0; i < 3; i++) {
        lap("linear", true);
        lap("linear", false);
    }
    laps_tell_no_more(hear);
    laps_read(laps);
    ck_assert_double_gt(heard, 0);
    ck_assert_double_eq(laps[0].seconds[1], heard);
    lap("linear", true);
    laps_read(laps);
    ck_assert_double_gt(laps[0].seconds[1], heard);
}
END_TEST

static int words;
static void count(const char *what, bool backward, double seconds)
{
    words++;
}

START_TEST(two_listeners_hear_the_same_words_and_one_may_leave)
{
    heard = words = 0;
    laps_tell(hear);
    laps_tell(count);
    laps_run(true);
    lap("linear", true);
    double first = heard;
    ck_assert_double_gt(first, 0);
    ck_assert_int_eq(words, 1);
    laps_tell_no_more(hear);
    lap("linear", true);
    ck_assert_double_eq(heard, first);
    ck_assert_int_eq(words, 2);
    laps_tell_no_more(count);
}
END_TEST

START_TEST(more_names_than_there_is_room_for_share_the_last_place)
{
    static char names[MAX_LAPS + 9][8];
    Lap laps[MAX_LAPS];
    laps_run(true);
    for (int i = 0; i < MAX_LAPS + 9; i++) {
        names[i][0] = (char)('a' + i / 26);
        names[i][1] = (char)('a' + i % 26);
        lap(names[i], false);
    }
    ck_assert_int_eq(laps_read(laps), MAX_LAPS);
    ck_assert_str_eq(laps[MAX_LAPS - 1].what, names[MAX_LAPS - 1]);
    laps_forget();
    ck_assert_int_eq(laps_read(laps), 0);
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("laps");
    TCase *tcase = tcase_create("laps");
    tcase_add_checked_fixture(tcase, from_the_start, NULL);
    tcase_add_test(tcase, what_is_not_running_counts_nothing);
    tcase_add_test(tcase, the_time_since_the_last_word_belongs_to_the_next);
    tcase_add_test(tcase, a_listener_hears_each_word_with_its_time_until_there_is_none);
    tcase_add_test(tcase, two_listeners_hear_the_same_words_and_one_may_leave);
    tcase_add_test(tcase, more_names_than_there_is_room_for_share_the_last_place);
    suite_add_tcase(all, tcase);
    return all;
}
