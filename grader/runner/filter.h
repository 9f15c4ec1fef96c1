/** @file
 * A filter of system calls. It forbids what no lab needs: other processes (to make, signal, trace,
 * read or slow them down), threads, files, sockets, namespaces, and pages that become executable.
 * The sandbox (grader/judge/launch/sandbox.h) prevents most of that too. But the filter also works
 * without a sandbox, and turns an attempt into a failed case that names the line.
 */
#pragma once

#include <stdbool.h>
#include <ucontext.h>

/** Installs the filter in this process, irrevocably: forbidden calls then raise SIGSYS, and opening
 *  a file for reading fails with EACCES. Call this after MPI_Init, when MPI has made its files and
 *  threads.
 *  @param devices also allows what a GPU's driver needs: opening existing files except write-only,
 *  executable pages, and threads; the sandbox then limits what a lab can reach
 *  @return whether the system supports such filters */
bool filter_begin(bool devices);

/** Call this in a SIGSYS handler for a call outside a case: sets its result, 0 for calls on files
 *  that MPI makes at its end, otherwise -EPERM. */
void filter_answer(ucontext_t *context, int call);
