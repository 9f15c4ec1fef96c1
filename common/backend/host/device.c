/* What the processor is as a device of the kernels: see cuda/device.cu for a GPU. */
#include "backend/backend.h"

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
    return "what this machine has";
}
