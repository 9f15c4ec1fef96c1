/** @file
 * Numbers that the plays of a case draw. The judge plays each case many times, a runner once.
 */
#pragma once

#include <stdint.h>

#include "base/philox.h"

/** `count` numbers in [0, 1), those of philox_uniform_at. They are kept until numbers of another case are asked for.
 *  `of_case` is the key of the case. */
const double *drawn(uint64_t of_case, PhiloxKey key, int64_t count);
