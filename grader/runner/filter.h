/** @file
 * A filter of system calls. It allows what a rank needs after MPI_Init. No lab needs other
 * processes (to make, signal, trace, read or slow them down), threads, files to write, sockets,
 * namespaces, pages that become executable, or other pages where the program and its record are: an
 * attempt to get at these ends the case, and the report names the line. All other calls that are not allowed fail with ENOSYS, as on a kernel
 * that does not have them: a library that tries one can do without. The sandbox
 * (grader/judge/launch/sandbox.h) also prevents most of these attempts, but the filter works
 * without a sandbox too.
 */
#pragma once

#include <stdbool.h>
#include <ucontext.h>

/** Installs the filter in this process, irrevocably: forbidden calls then raise SIGSYS, and opening
 *  a file for reading fails with EACCES. Call this after MPI_Init, when MPI has made its files and
 *  threads. The record is below the program.
 *  @param devices also allows what a GPU's driver needs: opening existing files (but not
 *  write-only), executable pages and any other, threads, and all calls older than Linux 5.3 that end no case; the
 *  sandbox then limits what a lab can reach
 *  @return whether the system supports such filters */
bool filter_begin(bool devices);

/** Call this in a SIGSYS handler for a call outside a case: sets its result, 0 for calls on files
 *  that MPI makes at its end, otherwise -EPERM. */
void filter_answer(ucontext_t *context, int call);
