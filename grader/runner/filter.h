/** @file
 * Forbids what a lab does not need and its process therefore must not request from the system, in
 * whatever way: other processes (creating, signalling, tracing or reading them), files, sockets,
 * namespaces. The sandbox (grader/judge/launch/sandbox.h) prevents all of that too; this filter
 * also works without one, and turns an attempt into a failed case that names the line.
 */
#pragma once

#include <stdbool.h>
#include <ucontext.h>

/** From now on such a system call raises SIGSYS in this process (opening a file to read is only
 *  refused). Call this after MPI has created its files and threads. Returns whether the system has
 *  such filters. With `devices`, existing files may be opened, except for writing only: a GPU's
 *  driver opens its devices again for each mapping. The sandbox prevents what a lab could do that
 *  way. */
bool filter_begin(bool devices);

/** Call this in a SIGSYS handler: what the runner itself gets for such a call outside a case. */
void filter_answer(ucontext_t *context, int call);
