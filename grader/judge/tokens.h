/** @file
 * Do two C files, or a function in both, have the same tokens? Comments and white space do not count.
 */
#pragma once

#include <stdbool.h>

/** False also when one of them cannot be read. */
bool same_tokens(const char *path_a, const char *path_b);

/** Has this function the same tokens in both? False also when it is not found in one of them. */
bool same_function(const char *path_a, const char *path_b, const char *name);
