/** @file
 * Matrices in 16 bits, for products: of the weights, which are rounded once a step, and of the last few others. A product of the same x
 * follows soon, as a rule: x is multiplied with the weights of q, k and v, dy by W and by x.
 */
#pragma once

#include "backend/cuda/device.cuh"

/** Makes room for copies of this many numbers each; some that were there may be gone. */
void rounded_room(int64_t count);

/** x [count] in 16 bits, which stay for the next call too. The numbers of x may have changed since the last call. */
const uint16_t *rounded_copy(const real *x, int64_t count);

/** What was put on the stream since device_changes() was `before` writes to c [count] alone: copies of other matrices stay good. */
void rounded_copies_outlive(uint64_t before, const real *c, int64_t count);
