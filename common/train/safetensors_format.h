/** @file
 * What writing and reading of safetensors files share.
 */
#pragma once

#include "base/real.h"

/** The header's key of what is no tensor. */
#define SAFETENSORS_METADATA "__metadata__"
/** The format's name for `real`. */
#define SAFETENSORS_DTYPE (sizeof(real) == 4 ? "F32" : "F64")
