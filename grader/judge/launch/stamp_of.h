/** @file
 * Was this runner built of the same protocol as the judge?
 */
#pragma once

#include <stdbool.h>

#include "base/problem.h"

/** Looks for the judge's own stamp in the program's file, before any of it is run; otherwise false with `problem`. */
bool stamp_fits(const char *runner, Problem *problem);
