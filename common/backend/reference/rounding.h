/** @file
 * The rounding mode of the reference backend. The judge uses it to measure the largest plausible
 * rounding error.
 */
#pragma once

#include "backend/backend.h"

/** From now on every kernel computes as in single precision: it rounds each product, sum and result
 * to float, and takes each reduction (dot products, row and column sums, the rows added to one
 * table row) in an order drawn from `order_seed` for that call. It also draws whether products are
 * rounded before they are added: a sum of two cancelling products has no other order, but a
 * processor with fused multiply-add rounds only one of them. Arguments must already hold floats.
 *  @param order_seed 0, the default, for exact double precision in index order */
void reference_round_like_fp32(uint64_t order_seed);

/** This backend's backend_set_products(), under its own name for tests that also link the cpu
 *  backend. Any precision but TF32. */
void reference_set_products(Precision precision);
Precision reference_products(void); /**< the same for backend_products() */
