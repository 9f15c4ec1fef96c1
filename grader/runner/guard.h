/** @file
 * What a lab may not do to its runner: end it, or take all memory. link-runner.sh leads a lab's calls of
 * malloc, exit and their kin to the graded_ functions here.
 */
#ifndef BALISE_GRADER_GUARD_H
#define BALISE_GRADER_GUARD_H

#include <stdarg.h>
#include <stddef.h>

#include "grader/protocol.h"

/** From now on a fatal signal is told in the rank's header, with the student's line, before it ends the rank; and it ends it
 *  when each other rank has come as far as it can, or a second later. */
void guard_signals(Launch *launch, int rank);

/** Forgets what the lab has allocated: a case begins. */
void guard_begin(void);

/** From now on the most is that of what the lab holds now and of what comes; and the most, in bytes. */
void guard_begin_peak(void);
int64_t guard_peak(void);

/** A lab's own memory holds NaN before it is written and after it is given back; what was written past the end of a block ends
 *  the case when that is given back. */
void *graded_malloc(size_t bytes);
void *graded_calloc(size_t count, size_t bytes);
void *graded_realloc(void *memory, size_t bytes);
void *graded_aligned_alloc(size_t alignment, size_t bytes);
int graded_posix_memalign(void **memory, size_t alignment, size_t bytes);
void *graded_reallocarray(void *memory, size_t count, size_t size);
void *graded_memalign(size_t alignment, size_t bytes);
void *graded_valloc(size_t bytes);
char *graded_strdup(const char *text);
char *graded_strndup(const char *text, size_t most);
int graded_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int graded_vasprintf(char **out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void graded_free(void *memory);

_Noreturn void graded_exit(int status);
_Noreturn void graded__exit(int status);
_Noreturn void graded__Exit(int status);
_Noreturn void graded_quick_exit(int status);
_Noreturn void graded_abort(void);

#endif
