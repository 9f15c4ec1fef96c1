/** @file
 * Labs 3 and 21: the ids that are looked up in a table.
 */
#pragma once

#include "grader/judge/diagnose/evidence.h"

/** For the gradient of a table: was its lookup already wrong? */
Finder lookup_was_wrong;
