/* A rank that shares its core sleeps between the polls of a wait, and at no other time. */
#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "comm/yield.h"

Suite *suite(void);

enum { POLLS = 400, SOME = 50, FEW = 20, WORK = 100000, ROUNDS = 50 };

/* The number of sleeps: only a process that sleeps gives up its core of its own accord. */
static long sleeps(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}

/* Polls after that many nanoseconds of work each. Returns the number of sleeps. */
static long poll_after(int64_t work)
{
    const long before = sleeps();
    for (int i = 0; i < POLLS; i++) {
        for (int64_t begin = now(); work > 0 && now() - begin < work;)
            ;
        ck_assert_int_eq(sched_yield(), 0);
    }
    return sleeps() - before;
}

/* Other processes may interrupt the polls, which then look like work, or wake this one: a round may
 * have fewer or more sleeps than it should. */
static long most_sleeps(int64_t work)
{
    long most = 0;
    for (int i = 0; i < ROUNDS && most <= SOME; i++) {
        const long count = poll_after(work);
        most = count > most ? count : most;
    }
    return most;
}

static long fewest_sleeps(int64_t work)
{
    long fewest = POLLS;
    for (int i = 0; i < ROUNDS && fewest >= FEW; i++) {
        const long count = poll_after(work);
        fewest = count < fewest ? count : fewest;
    }
    return fewest;
}

static int64_t waits;

static int64_t one_wait(void)
{
    return 1;
}

static int64_t many_waits(void)
{
    return ++waits;
}

static int64_t no_wait(void)
{
    return -1;
}

START_TEST(polls_without_work_between_them_are_a_wait)
{
    ck_assert_int_gt(most_sleeps(0), SOME);
}
END_TEST

START_TEST(polls_between_pieces_of_work_do_not_sleep)
{
    ck_assert_int_lt(fewest_sleeps(WORK), FEW);
}
END_TEST

START_TEST(a_program_may_say_which_polls_are_a_wait)
{
    yield_by(one_wait);
    ck_assert_int_gt(most_sleeps(0), SOME);
    ck_assert_int_gt(most_sleeps(WORK), SOME);
    yield_by(many_waits);
    ck_assert_int_lt(fewest_sleeps(0), FEW);
    yield_by(no_wait);
    ck_assert_int_lt(fewest_sleeps(0), FEW);
    yield_by(NULL);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("yield");
    TCase *cases = tcase_create("sleeps");
    setenv("RANKS_SHARE_CORES", "1", 1);
    tcase_add_test(cases, polls_without_work_between_them_are_a_wait);
    tcase_add_test(cases, polls_between_pieces_of_work_do_not_sleep);
    tcase_add_test(cases, a_program_may_say_which_polls_are_a_wait);
    suite_add_tcase(suite, cases);
    return suite;
}
