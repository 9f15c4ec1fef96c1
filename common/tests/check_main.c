/* The main function of every test program: runs the suite of its file, and prints a line per test
 * (the Test Anything Protocol), which run.sh reads. With several ranks, rank 0 prints all lines,
 * the others only their failures. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

Suite *suite(void);

/* Each assertion that holds writes a message to Check, which says after a crash how far the test
 * came. Some tests assert a million times, so Check gets one message in a millisecond at most. */
void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line)
{
    static long long last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long long milliseconds = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    if (milliseconds != last)
        __real__mark_point(file, line);
    last = milliseconds;
}

static void print_failures(SRunner *runner, int failed, const char *rank)
{
    TestResult **failures = srunner_failures(runner);
    for (int i = 0; i < failed; i++)
        printf("not ok - on rank %s: %s:%d: %s\n", rank, tr_lfile(failures[i]), tr_lno(failures[i]),
               tr_msg(failures[i]));
    free(failures);
}

int main(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    bool prints_all = !rank || strcmp(rank, "0") == 0;
    SRunner *runner = srunner_create(suite());
    srunner_set_tap(runner, prints_all ? "-" : "/dev/null");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    if (!prints_all)
        print_failures(runner, failed, rank);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
