/** @file
 * Prevents a lab from ending its runner or taking all memory. link-runner.sh redirects a lab's
 * calls to malloc, exit and similar functions to the graded_ functions here.
 */
#pragma once

#include "base/problem.h"
#include "grader/protocol.h"

/** From now on a fatal signal is recorded in the rank's header, with the student's line, before it
 *  ends the rank. The rank ends when all other ranks have progressed as far as they can, after
 *  a second at most. */
void guard_signals(Launch *launch, int rank);

/** Forgets the lab's allocations. Call this when a case begins. */
void guard_begin(void);

/* ---- SAN=1: what sanitizers report, see sanitizer.c; without them, nothing ------------------------------------------- */

/** Makes sanitizer reports call `found`, at most once per case, with the line of the lab or NULL.
 *  `found` runs inside the report and must not leave by longjmp(). */
void sanitizer_watch(void (*found)(const Problem *problem, void *address));

/** Call this when a case begins. */
void sanitizer_begin(void);

/** Has a sanitizer reported anything since sanitizer_begin()? */
bool sanitizer_has_found(void);

/** Defines the function to which a lab's calls of `name` are redirected. */
#define GRADED(type, name, ...)                                                                    \
    type graded_##name(__VA_ARGS__);                                                               \
    type graded_##name(__VA_ARGS__)
