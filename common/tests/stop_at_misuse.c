/* What a misuse does in a program of the tests that is no Check program: it ends it. */
#include <stdlib.h>

#include "base/run.h"

void run_ends(Problem *problem, void *address)
{
    problem_print(stderr, problem);
    exit(2);
}

void run_todo(int balise, const char *function, void *address)
{
    fprintf(stderr, "error: TODO(%d) in %s\n", balise, function);
    exit(2);
}
