/** @file
 * The files that a sandbox shows: see sandbox.h.
 */
#pragma once

#include "grader/judge/launch/sandbox.h"

/** Lays them in the calling process's own mount namespace, as `place->user`.
 *  @return whether all of it could be done; if not, `why` says what could not */
bool sandbox_files(const Place *place, const Seen *seen, char *why, size_t size);
