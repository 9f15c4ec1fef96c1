/* The memory of kernels that compute on the host. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/backend.h"

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

void backend_set_bytes(void *memory, int byte, int64_t bytes)
{
    memset(memory, byte, (size_t)bytes);
}

bool backend_looks_for_zeros(void)
{
    return true;
}

bool backend_only_counts(void)
{
    return false;
}
