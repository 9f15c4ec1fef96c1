/* The main function of every test program: runs the suite of its file, and prints a line per test
 * (the Test Anything Protocol), which run.sh reads. With several ranks, rank 0 prints all lines,
 * the others only their failures. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Suite *suite(void);

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
