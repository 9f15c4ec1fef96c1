/* The host as the device of the cpu and reference kernels, and of a dry run. cuda/device.cu is the
 * counterpart for a GPU. */
#include <string.h>

#include "backend/backend.h"
#include "base/language.h"

bool backend_ready(Problem *problem)
{
    return true; /* always ready */
}

const char *backend_device(void)
{
    return "";
}

const char *backend_memory_place(MemoryKind kind)
{
    return _("what this machine has");
}

void backend_range(const char *name)
{
}

void backend_range_end(void)
{
}

bool backend_open_all(void)
{
    return false;
}

void backend_wait(void)
{
}

void backend_wait_always(bool always)
{
    /* Kernels have always ended when their call returns. */
}

void *backend_on_host(void *memory)
{
    return memory;
}

void backend_read(void *host, const void *memory, int64_t bytes)
{
    memcpy(host, memory, (size_t)bytes);
}

void backend_write(void *memory, const void *host, int64_t bytes)
{
    memcpy(memory, host, (size_t)bytes);
}
