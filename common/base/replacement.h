/** @file
 * A file that comes whole or not at all: it is written beside, and renamed once all of it is on the disk.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/problem.h"

/** What will stand at a path. */
typedef struct Replacement {
    FILE *stream;        /**< to be written to; an error of the stream is found at the end */
    int error;           /**< the first errno, or 0 */
    char *path, *beside; /**< where it will stand, and where it is written */
} Replacement;

/** Begins a file for `path`. Where it cannot be made, or what is there is no file, `problem` is set: `hint` as in problem_set(), `what` with a %s for the reason.
 *  @return NULL with `problem`, or what replacement_end() or replacement_drop() frees */
Replacement *replacement_begin(const char *path, const char *hint, const char *what,
                               Problem *problem);

/** Appends bytes. What goes wrong is said by replacement_end(). */
void replacement_put(Replacement *file, const void *bytes, size_t count);

/** Waits until the file is on the disk, and gives it its name. On failure, now or before, `problem` is set as in replacement_begin(), what
 * stood at the path stays, and nothing is left beside. */
bool replacement_end(Replacement *file, const char *hint, const char *what, Problem *problem);

/** Ends it without a trace. */
void replacement_drop(Replacement *file);
