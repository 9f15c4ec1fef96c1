/** @file
 * What a lab may not do to its runner: end it, or take all memory. link-runner.sh leads a lab's calls of
 * malloc, exit and their kin to the graded_ functions here.
 */
#pragma once

#include "base/problem.h"
#include "grader/protocol.h"

/** From now on a fatal signal is told in the rank's header, with the student's line, before it ends the rank; and it ends it
 *  when each other rank has come as far as it can, or a second later. */
void guard_signals(Launch *launch, int rank);

/** Forgets what the lab has allocated: a case begins. */
void guard_begin(void);

/* ---- SAN=1: what the sanitizers find, see sanitizer.c; without them nothing is found -------------------------------- */

/** From now on `found` is told of what a sanitizer finds, at most once a case, from within it: it must not leave by longjmp(). */
void sanitizer_watch(void (*found)(const Problem *problem, void *address));

/** A case begins. */
void sanitizer_begin(void);

/** Whether anything was found since then. */
bool sanitizer_has_found(void);

/** Defines what a lab's call of `name` leads to. */
#define GRADED(type, name, ...)                                                                    \
    type graded_##name(__VA_ARGS__);                                                               \
    type graded_##name(__VA_ARGS__)
