/* What a lab does beside the words of the kit: memory of its own, and looks at raw numbers. */
#include "base/run.h"
#include "grader/labs/work.h"
#include "grader/runner/guard.h"

/* tensor_data() is passed no context. */
static OwnWork own;

void own_work_begin(void)
{
    own = (OwnWork){0};
    guard_begin_peak();
}

OwnWork own_work(void)
{
    own.bytes = guard_peak();
    return own;
}

float *__real_tensor_data(Tensor *x);
float *__wrap_tensor_data(Tensor *x);

float *__wrap_tensor_data(Tensor *x)
{
    if (own.looks++ == 0)
        own.address = callsite();
    return __real_tensor_data(x);
}
