/* A run without progress is reported once. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "train/trainer.h"

Suite *suite(void);

static int words, old_stderr;
static char said[4096];

static void listen_to_stderr(void)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK); /* NOLINT(cppcoreguidelines-pro-type-vararg) */
    old_stderr = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    words = ends[0];
}

/* The number of lines about missing progress. */
static int lines_said(void)
{
    int lines = 0;
    dup2(old_stderr, STDERR_FILENO);
    ssize_t length = read(words, said, sizeof said - 1);
    said[length > 0 ? length : 0] = '\0';
    for (const char *at = said; (at = strstr(at, "no step has finished")); at++)
        lines++;
    return lines;
}

/* Sleeps; after a signal, sleeps for the rest of the time. */
static void spend(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&time, &time) != 0)
        continue;
}

START_TEST(a_stalled_run_is_reported_once)
{
    listen_to_stderr();
    stall_moved(1);
    spend(1.2);
    stall_moved(1);
    spend(1.2);
    stall_end();
    ck_assert_int_eq(lines_said(), 1);
    ck_assert_ptr_nonnull(strstr(said, "HINT: make grade"));
}
END_TEST

/* backend/cpu/products.c says why a signal handler needs a stack of its own. */
START_TEST(a_report_has_a_stack_of_its_own)
{
    struct sigaction action;
    stall_moved(60);
    stall_end();
    sigaction(SIGALRM, NULL, &action);
    ck_assert_int_ne(action.sa_flags & SA_ONSTACK, 0);
}
END_TEST

START_TEST(a_run_that_progresses_is_not_reported)
{
    listen_to_stderr();
    for (int i = 0; i < 8; i++) {
        stall_moved(1);
        spend(0.2);
    }
    stall_end();
    spend(1.2);
    ck_assert_int_eq(lines_said(), 0);
}
END_TEST

START_TEST(long_steps_extend_the_limit)
{
    listen_to_stderr();
    stall_moved(1);
    spend(0.8);
    stall_moved(1);
    spend(2);
    stall_end();
    ck_assert_int_eq(lines_said(), 0);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("stall");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 30);
    tcase_add_test(all, a_stalled_run_is_reported_once);
    tcase_add_test(all, a_report_has_a_stack_of_its_own);
    tcase_add_test(all, a_run_that_progresses_is_not_reported);
    tcase_add_test(all, long_steps_extend_the_limit);
    suite_add_tcase(s, all);
    return s;
}
