/** @file
 * Lab 15: what the checks of its calls and of its numbers need of each other.
 */
#pragma once

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/ring.h"

/** Writes a sentence if a rank sends a chunk in each of n rounds, in this call of the function for
 *  this part of the ring. @return whether one does */
bool tell_n_rounds(Trial *t, int part, int call, char *text, size_t size);
/** Appends a sentence if a rank has ended this call and sent fewer numbers than n - 1 chunks have.
 *  @return whether one has */
bool tell_too_few(const Trial *t, int part, int call, char *text, size_t size);
/** Fails unless a call's chunks follow each other, none is missing, and their sizes differ by at
 *  most 1. */
void compare_chunks(Trial *t, int call);
/** Like compare_chunks(), for counts that only ring_chunk() is tested with. */
void compare_extreme_chunks(Trial *t);
