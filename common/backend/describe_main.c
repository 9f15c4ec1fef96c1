/* Says what the kernels run on; or why they do not run, with status 2. */
#include <stdio.h>

#include "backend/backend.h"

int main(int argc, char **argv)
{
    (void)argc;
    backend_start(argv);
    puts(backend_description());
    return 0;
}
