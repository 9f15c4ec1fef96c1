/* The reference backend's description, and the settings that it supports. */
#include "backend/reference/rounding.h"

bool backend_check(Problem *problem)
{
    return true; /* plain loops run on any machine */
}

const char *backend_description(void)
{
    return "reference (double precision, plain loops, 1 thread)";
}

double backend_peak(void)
{
    return 0; /* plain loops have no speed to compare with */
}

bool backend_set_products(Precision precision, int64_t width, Problem *problem)
{
    /* TF32 has no definition: whether a GPU rounds to it or drops bits depends on its kernel. */
    const bool defined = precision != TF32;
    reference_set_products(defined ? precision : FP32);
    return defined ||
           problem_set(problem, NULL, "on a CPU, use AMP=bf16; on a GPU, add BACKEND=cuda",
                       "AMP=%s needs a GPU", precision_name(precision));
}

Precision backend_products(void)
{
    return reference_products();
}

void backend_set_threads(int threads)
{
    /* Always one thread: the definition is sequential. */
}
