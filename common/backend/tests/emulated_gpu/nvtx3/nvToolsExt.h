/* The two NVTX functions that the kit calls, for the emulated GPU: each adds a line, "+ name" or
 * "-", to the file EMULATED_RANGES, if that is set, as a profiler would see it. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

static inline int emulated_range(const char *sign, const char *name)
{
    const char *path = getenv("EMULATED_RANGES");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s%s\n", sign, name);
        fclose(file);
    }
    return 0;
}

static inline int nvtxRangePushA(const char *name)
{
    return emulated_range("+ ", name);
}

static inline int nvtxRangePop(void)
{
    return emulated_range("-", "");
}
