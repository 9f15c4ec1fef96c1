/** @file
 * Replaces a file atomically: writes a new file that has no name, and puts it in the old one's
 * place once all of it is on disk. The new file has a name of its own only for an instant, so a
 * killed process leaves no piece of it. Where the file system has no unnamed files (NFS, older
 * overlays), the new file is `path.partial` from the beginning, or has a unique name if another
 * process is writing that one. The next process reuses a `path.partial` that a killed process has
 * left.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/problem.h"

/** Outputs of one kind. An output replaces only an earlier output of its kind, never an input or an
 *  output of another kind. */
typedef struct OutputKind {
    const char *name;             /**< with an article, N_(): "the file exists, and is not %s" */
    const char *mark;             /**< in the first 1000 bytes of each output of this kind */
    bool (*is_one)(const char *); /**< a further check of a file with the mark, or NULL */
} OutputKind;

/** Checks that an output may replace what `path` names: an output of the same kind, an empty file,
 *  nothing, or anything other than a regular file, which the caller handles. If `kind` is NULL, the
 *  output is a file of the kit's own and may replace anything.
 *  @return true; or false with `problem` */
bool output_may_replace(const char *path, const OutputKind *kind, Problem *problem);

/** Do both paths name the same file? It need not exist yet. */
bool is_same_output(const char *one, const char *other);

/** A file being written. */
typedef struct Replacement {
    FILE *stream; /**< write to this; replacement_end() detects its errors */
    int error;    /**< the first errno, or 0 */
    char *path;   /**< the final path */
    char *beside; /**< the temporary one, or NULL while the file has no name */
} Replacement;

/** Begins a file for `path`, if output_may_replace() allows that. If the file cannot be created, or
 *  if `path` names something other than a regular file, sets `problem`: `hint` as in problem_set(),
 *  `what` with a %s for the reason.
 *  @return NULL with `problem`; otherwise a record that replacement_end() or replacement_drop()
 *  frees */
Replacement *replacement_begin(const char *path, const OutputKind *kind, const char *hint,
                               const char *what, Problem *problem);

/** Appends bytes. replacement_end() reports errors. */
void replacement_put(Replacement *file, const void *bytes, size_t count);

/** Waits until the file is on disk, puts it in place, and frees the record. If that or an earlier
 * write has failed, sets `problem` as replacement_begin() does, keeps the old file and removes the
 * temporary one.
 *  @return true; or false with `problem` */
bool replacement_end(Replacement *file, const char *hint, const char *what, Problem *problem);

/** Discards the new file and frees the record. */
void replacement_drop(Replacement *file);
