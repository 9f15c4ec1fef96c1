/** @file
 * The rounding mode of the reference backend, with which the judge measures what an error of rounding may
 * amount to.
 */
#pragma once

#include "backend/backend.h"

/** From now on every kernel computes as single precision would: each product, sum and result is rounded to
 * float, and each reduction (dot products, row and column sums, the rows added to one table row) is summed in
 * an order of its own, drawn from `order_seed` anew for each call of a kernel. Whether products are rounded
 * before they are added is drawn, too: a sum of two products that cancel has no other order, but a processor
 * that fuses rounds one of them alone. Arguments are taken to hold floats already.
 *  @param order_seed 0 for exact double precision in the order of the index, which is the default */
void reference_round_like_fp32(uint64_t order_seed);

/** What backend_set_products does here; under a name of its own for tests that link the cpu backend too. */
void reference_set_products(Precision precision);
