/* The run_... functions for small programs: a misuse ends the program. */
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
