/** @file
 * What a lab may not do to its runner: end it, or take all memory. link-runner.sh leads a lab's calls of
 * malloc, exit and their kin to the graded_ functions here.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "grader/protocol.h"

/** From now on a fatal signal is told in the rank's header, with the student's line, before it ends the rank; and it ends it
 *  when each other rank has come as far as it can, or a second later. */
void guard_signals(Launch *launch, int rank);

/** Forgets what the lab has allocated: a case begins. */
void guard_begin(void);

/** From now on guard_peak() is the most of what the lab holds now and of what comes. */
void guard_begin_peak(void);
/** The most memory of its own that the lab held since guard_begin_peak(), in bytes. */
int64_t guard_peak(void);

/** A lab's own memory holds NaN before it is written and after it is given back; what was written past the end of a block ends
 *  the case when that is given back. */
void *graded_malloc(size_t bytes);
/** As calloc(). */
void *graded_calloc(size_t count, size_t bytes);
/** As realloc(), with what graded_malloc() promises. */
void *graded_realloc(void *memory, size_t bytes);
/** As aligned_alloc(), likewise. */
void *graded_aligned_alloc(size_t alignment, size_t bytes);
/** As posix_memalign(), likewise. */
int graded_posix_memalign(void **memory, size_t alignment, size_t bytes);
/** As reallocarray(), likewise. */
void *graded_reallocarray(void *memory, size_t count, size_t size);
/** As memalign(), likewise. */
void *graded_memalign(size_t alignment, size_t bytes);
/** As valloc(), likewise. */
void *graded_valloc(size_t bytes);
/** As strdup(); the copy is a block of the lab's. */
char *graded_strdup(const char *text);
/** As strndup(), likewise. */
char *graded_strndup(const char *text, size_t most);
/** As asprintf(), likewise. */
int graded_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** As vasprintf(), likewise. */
int graded_vasprintf(char **out, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/** As free(), of a block of the lab's. What was written past its end ends the case. */
void graded_free(void *memory);

/** For exit(): ends the case, with the line that called it. A lab does not end its runner. */
_Noreturn void graded_exit(int status);
/** For _exit(), likewise. */
_Noreturn void graded__exit(int status);
/** For _Exit(), likewise. */
_Noreturn void graded__Exit(int status);
/** For quick_exit(), likewise. */
_Noreturn void graded_quick_exit(int status);
/** For abort(), likewise. */
_Noreturn void graded_abort(void);
