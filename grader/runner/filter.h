/** @file
 * What a lab has no use for and its process therefore cannot ask of the system, however it asks: other processes (to make,
 * signal, trace, read or slow them down), threads, files, sockets, namespaces, and pages that become executable. The sandbox
 * (grader/judge/launch/sandbox.h) holds most of that too; this holds also where there is no sandbox, and it makes an attempt a
 * failed case that names the line.
 */
#pragma once

#include <stdbool.h>
#include <ucontext.h>

/** From now on, for this process and for good, such a call gets SIGSYS (opening a file to read is just refused). To be called
 *  when MPI is ready, which has made its files and threads by then. Returns whether the system has such filters.
 *  With `devices` files that are there may be opened, but for writing alone: a GPU's driver opens its devices again for each mapping, loads
 *  code and starts threads. What a lab could read or write that way the sandbox holds. */
bool filter_begin(bool devices);

/** Call this in a SIGSYS handler: what the runner itself gets for such a call outside a case. */
void filter_answer(ucontext_t *context, int call);
