/* What the processor is as a device of the kernels: see cuda/device.cu for a GPU. */
#include "backend/backend.h"
#include "base/language.h"

bool backend_ready(Problem *problem)
{
    (void)problem; /* it always is */
    return true;
}

const char *backend_device(void)
{
    return "";
}

const char *backend_memory_place(MemoryKind kind)
{
    (void)kind;
    return _("what this machine has");
}

void backend_range(const char *name)
{
    (void)name;
}

void backend_range_end(void)
{
}
