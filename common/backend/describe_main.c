/* Prints the library or device that runs the kernels; or why they cannot run, with exit status
 * 2. */
#include <stdio.h>

#include "backend/backend.h"

int main(int argc, char **argv)
{
    Problem problem;
    backend_start(argv);
    if (!backend_ready(&problem)) {
        problem_print(stderr, &problem);
        return 2;
    }
    puts(backend_description());
    return 0;
}
