/** @file
 * Do two C files, or one function in both, have the same tokens? Ignores comments and white space.
 */
#pragma once

#include <stdbool.h>

/** Do these files have the same tokens? Also returns false if one of them cannot be read. */
bool same_tokens(const char *path_a, const char *path_b);

/** Like same_tokens(), for one function. Also returns false if a file does not contain it. */
bool same_function(const char *path_a, const char *path_b, const char *name);
