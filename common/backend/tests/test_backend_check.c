/* The cpu backend's report on the machine and the environment. The library reads the environment
 * when it is loaded, so the test restarts itself. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/cpu/products.h"

static const char CHILD[] = "BALISE_TEST_BACKEND_CHILD";

/* A child starts like a program, prints backend_check's message, or "fine", and ends before Check
 * runs anything. */
__attribute__((constructor)) static void answer(int argc, char **argv)
{
    (void)argc;
    if (!getenv(CHILD))
        return;
    backend_start(argv);
    Problem problem;
    if (backend_check(&problem))
        puts("fine");
    else
        problem_print(stdout, &problem);
    puts(backend_description());
    fflush(stdout);
    _exit(0);
}

/* Runs this program as a child with OPENBLAS_CORETYPE set to `core` (NULL: not set). */
static void ask(const char *core, char *said, size_t size)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        setenv(CHILD, "1", 1);
        if (core)
            setenv("OPENBLAS_CORETYPE", core, 1);
        else
            unsetenv("OPENBLAS_CORETYPE");
        execl("/proc/self/exe", "child", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; length < size - 1 && (n = read(ends[0], said + length, size - 1 - length)) > 0;)
        length += (size_t)n;
    said[length] = 0;
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

START_TEST(kernels_are_as_wide_as_the_machine_even_if_the_library_does_not_recognise_it)
{
    char said[2048];
    ask(NULL, said, sizeof said);
    ck_assert_msg(strncmp(said, "fine\ncpu (", 10) == 0, "%s", said);
}
END_TEST

START_TEST(a_forced_slow_kernel_is_a_problem_with_a_hint)
{
#ifdef __x86_64__
    char said[2048];
    if (!openblas_get_corename || !__builtin_cpu_supports("avx512f"))
        return; /* Haswell's kernels are too narrow only for AVX-512 */
    ask("Haswell", said, sizeof said);
    ck_assert_msg(strstr(said, "OPENBLAS_CORETYPE=Haswell makes OpenBLAS use its Haswell kernels"),
                  "%s", said);
    ck_assert_msg(strstr(said, "HINT: unset OPENBLAS_CORETYPE"), "%s", said);
    ask("SkylakeX", said, sizeof said);
    ck_assert_msg(strncmp(said, "fine\n", 5) == 0, "%s", said);
#endif
}
END_TEST

START_TEST(the_description_names_the_threads)
{
    backend_set_threads(1);
    ck_assert(strstr(backend_description(), ", 1 thread)"));
    backend_set_threads(2);
    ck_assert(strstr(backend_description(), ", 2 threads)"));
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("backend check");
    TCase *tests = tcase_create("cpu");
    tcase_add_test(tests,
                   kernels_are_as_wide_as_the_machine_even_if_the_library_does_not_recognise_it);
    tcase_add_test(tests, a_forced_slow_kernel_is_a_problem_with_a_hint);
    tcase_add_test(tests, the_description_names_the_threads);
    suite_add_tcase(s, tests);
    return s;
}
