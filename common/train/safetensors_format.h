/** @file
 * What writing and reading of safetensors files share.
 */
#ifndef BALISE_SAFETENSORS_FORMAT_H
#define BALISE_SAFETENSORS_FORMAT_H

#include "base/real.h"

/** The header's key of what is no tensor. */
#define SAFETENSORS_METADATA "__metadata__"
/** The format's name for `real`. */
#define SAFETENSORS_DTYPE (sizeof(real) == 4 ? "F32" : "F64")

#endif
