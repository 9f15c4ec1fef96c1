/* The host as the device of the cpu and reference kernels, and its memory. cuda/device.cu is the
 * counterpart for a GPU. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

/* ---- memory ---- */

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

void *backend_memory(int64_t bytes, MemoryKind kind)
{
    void *memory = NULL;
    size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    if (posix_memalign(&memory, alignment, bytes ? (size_t)bytes : 1) != 0)
        return NULL;
    if (bytes >= HUGE_PAGE)
        madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
    return memory;
}

void backend_memory_free(void *memory, MemoryKind kind)
{
    free(memory);
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

void backend_set_bytes(void *memory, int byte, int64_t bytes)
{
    memset(memory, byte, (size_t)bytes);
}

bool backend_looks_for_zeros(void)
{
    return true;
}
