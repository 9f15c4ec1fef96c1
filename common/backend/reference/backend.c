#include "backend/backend.h"

bool backend_check(Problem *problem)
{
    (void)problem; /* plain loops run alike everywhere */
    return true;
}

const char *backend_description(void)
{
    return "reference (double precision, plain loops, 1 thread)";
}

void backend_set_threads(int threads)
{
    (void)threads; /* always one: the definition is sequential */
}
