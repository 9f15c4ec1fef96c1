/** @file
 * What somebody has handed in: an archive or a folder, read without trusting anything in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"

enum {
    MOST_FILES = 4096,       /**< entries of an archive or a folder */
    MOST_BYTES = 64 << 20,   /**< unpacked, all of them together */
    MOST_SOURCE = 256 << 10, /**< a source file or a manifest */
    PATH_SIZE = 512          /**< bytes of a path, its end included */
};

/** One file that was handed in. */
typedef struct File {
    char *path;  /**< with '/' between its parts, none of which is empty, "." or ".." */
    char *bytes; /**< what it holds, where it was wanted */
    size_t size; /**< in bytes, also where the contents were not wanted */
} File;

/** All files of a submission. */
typedef struct Files {
    File file[MOST_FILES]; /**< the first `count` of them are filled */
    int count;             /**< files so far */
    size_t bytes;          /**< unpacked so far */
} Files;

/** Whether the contents of a file of this name are wanted; of others only the path is kept. */
bool is_wanted(const char *path);

/** Reads a .zip, .tar.gz, .tgz or .tar. Refuses what leads outside, links, devices, and what is too much.
 *  @return false with the reason in `problem->what` */
bool read_archive(const char *path, Files *files, Problem *problem);

/** The same of a folder. */
bool read_folder(const char *path, Files *files, Problem *problem);

/** Appends a file under a path that somebody else chose, if that is a good one. Its bytes are to be filled in.
 *  @return NULL with the reason in `problem->what` */
File *add_file(Files *files, const char *path, Problem *problem);
