/** @file
 * Writes a verdict's file atomically, so at any moment, the file is either the old or the new one.
 */
#pragma once

#include "base/replacement.h"

/** Replaces the file, an earlier output of this kind, with one that holds `text`. On failure
 *  returns false with `problem`, and the old file stays. */
bool write_file(const char *path, const OutputKind *kind, const char *text, Problem *problem);
