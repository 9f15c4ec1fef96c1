/** @file
 * What the host has written and many threads read: a batch's ids, and the mask, which each layer reads twice.
 */
#ifndef BALISE_BACKEND_CUDA_NEAR_CUH
#define BALISE_BACKEND_CUDA_NEAR_CUH

#include "backend/cuda/device.cuh"

/** x [count], or where it lies in the host's pinned memory a copy of it in the device's. The copy stands on the stream, as a kernel that is
 *  called now will; it is made anew only if the host has waited since, and may have written. */
const int32_t *brought_near(const int32_t *x, int64_t count);

#endif
