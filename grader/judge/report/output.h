/** @file
 * Writes a verdict's file atomically, so at any moment, the file is either the old or the new one.
 */
#pragma once

#include "base/problem.h"

/** Replaces the file by one with `text`. On failure returns false with `problem`, and the old file
 *  stays. */
bool write_file(const char *path, const char *text, Problem *problem);
