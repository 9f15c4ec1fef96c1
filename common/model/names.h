/** @file
 * The set of names of a model's parameters.
 */
#pragma once

#include <stdbool.h>

/** Adds a name to the set, which begins as NULL. The text must outlive the set.
 *  @return false if the set already has this name */
bool names_add(void **names, const char *name);

/** Frees the set. */
void names_free(void *names);
