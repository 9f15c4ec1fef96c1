/* Declarations that the parts of the emulated GPU share. */
#pragma once

#include "cuda_runtime.h"

enum { MOST_THREADS = 1024 }; /* of a block */

/* Ends the program, and says which thread of a kernel was running. */
[[noreturn]] void emulated_fail(const char *what);

/* Keeps the error for cudaGetLastError(), and returns it. */
cudaError_t emulated_error(cudaError_t error);

extern int emulated_depth; /* of nested runs; work on one stream may wait for work on another */
/* Runs all work on all streams. */
void emulated_run_all();

/* Makes the device's memory accessible while work runs; at other times, an access by the host
 * crashes. */
void emulated_protect(bool reached);
size_t emulated_device_bytes();
/* Is this memory of the device, or pinned memory? */
bool emulated_is_known(const void *memory);
