/** @file
 * manifest.json of a hand-in: whose it is, which kit it was made with, and a checksum of each file, so that what was damaged
 * on its way is noticed. It is no protection against people: who changes a file can change it too.
 */
#pragma once

#include <jansson.h>

#include "grader/gradebook/files.h"

/** Its name in a hand-in. */
#define MANIFEST_NAME "manifest.json"

enum {
    CHECKSUM_SIZE = 33,      /**< bytes of a checksum as text, its end included */
    NAME_BYTES = 128,        /**< of a student's name, its end included */
    PREDICTIONS_SIZE = 2048, /**< bytes of Manifest.predictions */
};

/** XXH3 with 128 bits, in hexadecimal. */
void checksum_of(const void *bytes, size_t size, char text[CHECKSUM_SIZE]);

/** Whether this can be a student's name: letters of any script, digits, blanks and - _ . ' between them, a letter or a
 *  digit first, at most 64 characters. */
bool is_name(const char *name);

/** What a hand-in says of itself. */
typedef struct Manifest {
    char name[NAME_BYTES]; /**< empty when there is none that can be one */
    char created[32];      /**< when it was packed, as it says itself: 2026-11-22T10:00:00Z */
    char remark[512];      /**< what does not fit; empty when all is well */
    /** by lab, what was predicted and measured: "6=48000/55296 7=3328/3328*"; '*': predicted after measuring */
    char predictions[PREDICTIONS_SIZE];
} Manifest;

/** Reads the manifest among `files` whose folder is `prefix` ("" or "ada/"), and compares the files with it. */
Manifest manifest_of(const Files *files, const char *prefix);
