/* What the reference backend is, and can do. */
#include "backend/reference/rounding.h"

bool backend_check(Problem *problem)
{
    (void)problem; /* plain loops run alike everywhere */
    return true;
}

const char *backend_description(void)
{
    return "reference (double precision, plain loops, 1 thread)";
}

bool backend_set_products(Precision precision, int64_t width, Problem *problem)
{
    (void)problem; /* plain loops can do either */
    reference_set_products(precision);
    return true;
}

void backend_set_weights(const real *weights, int64_t count, uint16_t *room)
{
    (void)weights, (void)count, (void)room; /* each product rounds its own */
}

void backend_set_threads(int threads)
{
    (void)threads; /* always one: the definition is sequential */
}
