/** @file
 * What somebody has handed in: an archive or a folder, read without trusting anything in it, and where in it the labs are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"

enum {
    MOST_FILES = 4096,       /**< entries of an archive or a folder */
    MOST_BYTES = 64 << 20,   /**< unpacked, all of them together */
    MOST_SOURCE = 256 << 10, /**< a source file or a manifest */
    MOST_LABS = 64,          /**< that a kit can have */
    PATH_SIZE = 512          /**< bytes of a path, its end included */
};

/** One file that was handed in. */
typedef struct File {
    char *path;  /**< with '/' between its parts, none of which is empty, "." or ".." */
    char *bytes; /**< what it holds, where it was wanted */
    size_t size; /**< in bytes, where it was wanted */
} File;

/** All files of a submission. */
typedef struct Files {
    File file[MOST_FILES]; /**< the first `count` of them are filled */
    int count;             /**< files so far */
    size_t bytes;          /**< unpacked so far */
} Files;

/** Reads a .zip, .tar.gz, .tgz or .tar, or a folder. Refuses what leads outside, links, devices, and what is too much. Of files that are
 *  neither a lab's nor a manifest only the path is kept.
 *  @return false with the reason in `problem->what` */
bool read_files(const char *path, bool is_folder, Files *files, Problem *problem);

/** Which file of a submission is which lab. */
typedef struct Layout {
    const File *lab[MOST_LABS]; /**< by lab_at(); NULL where there is none */
    /** the folder that labs/ stands in, "" or "ada/": where a manifest would be */
    char root[PATH_SIZE];
} Layout;

/** Finds labs/NN-slug/FILE.c, also with folders around labs/, and NN-slug/FILE.c without labs/.
 *  @return false with the reason in `problem->what` where that is not unambiguous */
bool find_labs(const Files *files, Layout *layout, Problem *problem);
