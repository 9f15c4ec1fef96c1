/** @file
 * The file that a verdict is written to: whole or as it was before, at any moment.
 */
#pragma once

#include "base/problem.h"

/** Puts `text` into the file: beside it, and renamed. Returns false with `problem`, and the file is as it was. */
bool write_file(const char *path, const char *text, Problem *problem);
