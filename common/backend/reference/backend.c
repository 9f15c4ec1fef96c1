/* What the reference backend is, and can do. */
#include "backend/reference/rounding.h"

bool backend_check(Problem *problem)
{
    return true; /* plain loops run alike everywhere */
}

const char *backend_description(void)
{
    return "reference (double precision, plain loops, 1 thread)";
}

bool backend_set_products(Precision precision, int64_t width, Problem *problem)
{
    /* plain loops can do either */
    reference_set_products(precision);
    return true;
}

void backend_set_weights(const real *weights, int64_t count, uint16_t *room)
{
    /* each product rounds its own */
}

void backend_set_threads(int threads)
{
    /* always one: the definition is sequential */
}
