/** @file
 * What the host has written and many threads read: a batch's ids, and the mask, which each layer reads twice.
 */
#pragma once

#include "backend/cuda/device.cuh"

/** x [count], or where it lies in the host's pinned memory a copy of it in the device's. The copy stands on the stream, as a kernel that is
 *  called now will; it is made anew only if the host has waited since, and may have written. */
const int32_t *brought_near(const int32_t *x, int64_t count);
