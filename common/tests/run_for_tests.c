/* The run_... functions for tests. An expected misuse returns to the test; any other one fails
 * it. */
#include "tests/run_for_tests.h"

Expectation expectation;

void run_ends(Problem *problem, void *address)
{
    expectation.problem = *problem;
    if (expectation.misuse)
        longjmp(expectation.back, 1);
    ck_abort_msg("misuse: %s (%s)", problem->what, problem->hint);
}

void run_noted(Problem *problem, Harm harm, void *address)
{
    expectation.problem = *problem;
    expectation.noted++;
    if (!expectation.notes)
        ck_abort_msg("misplaced: %s (%s)", problem->what, problem->hint);
}

void run_todo(int balise, const char *function, void *address)
{
    expectation.todo = balise;
    if (expectation.misuse)
        longjmp(expectation.back, 1);
    ck_abort_msg("TODO(%d) in %s", balise, function);
}
