/** @file
 * SAN=1: the runner, the kit and the lab are built with the address and undefined-behaviour sanitizers. What they find
 * becomes an entry in the student's terms, and the case ends at the next safe point; without them nothing is compiled here.
 */
#pragma once

#include <stdbool.h>

#include "base/problem.h"

/** From now on `found` is told of what a sanitizer finds, at most once a case, from within it: it must not leave by longjmp(). */
void sanitizer_watch(void (*found)(const Problem *problem, void *address));

/** A case begins. */
void sanitizer_begin(void);

/** Whether anything was found since then. */
bool sanitizer_has_found(void);
