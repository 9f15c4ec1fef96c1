/* NVTX ranges. Without a profiler, a call costs one comparison. See docs.nvidia.com/nsight-systems,
 * "NVTX Trace". */
#include <nvtx3/nvToolsExt.h>

#include "backend/backend.h"

void backend_range(const char *name)
{
    nvtxRangePushA(name);
}

void backend_range_end(void)
{
    nvtxRangePop();
}
