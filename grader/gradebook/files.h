/** @file
 * Reads what somebody handed in, an archive or a folder, without trusting its contents, and finds
 * the labs in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"

enum {
    MOST_FILES = 4096,       /**< entries of an archive or a folder */
    MOST_BYTES = 64 << 20,   /**< unpacked size of all files */
    MOST_SOURCE = 256 << 10, /**< size of a source file or a manifest */
    MOST_LABS = 64,          /**< in a kit */
    PATH_SIZE = 512          /**< bytes of a path, with its terminator */
};

/** A file of a submission. */
typedef struct File {
    char *path;  /**< parts separated by '/', none empty, "." or ".." */
    char *bytes; /**< its contents, if needed */
    size_t size; /**< in bytes, if needed */
} File;

/** All files of a submission. */
typedef struct Files {
    File file[MOST_FILES]; /**< the first `count` are filled */
    int count;             /**< number of files so far */
    size_t bytes;          /**< unpacked bytes so far */
} Files;

/** Reads a .zip, .tar.gz, .tgz or .tar, or a folder. Rejects paths that lead outside, links,
 *  devices and excessive sizes. For files that are neither a lab's nor a manifest, keeps only the
 *  path.
 *  @return false with the reason in `problem->what` */
bool read_files(const char *path, bool is_folder, Files *files, Problem *problem);

/** The length of a name's archive extension (.zip, .tar.gz, .tgz, .tar); 0 if it has none. */
size_t archive_end(const char *name);

/** Which file of a submission is which lab. */
typedef struct Layout {
    const File *lab[MOST_LABS]; /**< indexed as lab_at(); NULL if missing */
    /** for a missing lab: a file with the name of its file, in another folder or case; or NULL */
    const File *elsewhere[MOST_LABS];
    /** the folder that contains labs/, "" or "ada/"; a manifest would be there */
    char root[PATH_SIZE];
} Layout;

/** Finds labs/NN-slug/FILE.c, possibly inside other folders, and NN-slug/FILE.c without labs/.
 *  @return false with the reason in `problem->what` if the files are ambiguous */
bool find_labs(const Files *files, Layout *layout, Problem *problem);
