/** @file
 * A hand-in's manifest.json: the student's name, the kit's version, and a checksum of each file, to
 * detect damage. It does not protect against tampering, because whoever changes a file can change
 * the checksum too.
 */
#pragma once

#include <jansson.h>

#include "grader/gradebook/files.h"

/** The manifest's name in a hand-in. */
#define MANIFEST_NAME "manifest.json"

enum {
    CHECKSUM_SIZE = 33,      /**< bytes of a checksum as text, with its terminator */
    NAME_BYTES = 128,        /**< of a student's name, with its terminator */
    PREDICTIONS_SIZE = 2048, /**< bytes of Manifest.predictions */
};

/** XXH3, 128 bits, in hexadecimal. */
void checksum_of(const void *bytes, size_t size, char text[CHECKSUM_SIZE]);

/** Is this a valid student's name: letters of any script, digits, blanks and - _ . ' between them,
 *  starting with a letter or digit, at most 64 characters? */
bool is_name(const char *name);

/** The contents of a hand-in's manifest, as far as they are valid. */
typedef struct Manifest {
    char name[NAME_BYTES]; /**< the student's name; empty if missing or invalid */
    char created[32];      /**< when it was packed: "2026-11-22T10:00:00Z"; empty if missing */
    char remark[512];      /**< what is wrong with the hand-in; empty if nothing is */
    /** by lab, the predicted and the measured number: "6=48000/55296 7=3328/3328*"; '*': predicted
     *  after measuring */
    char predictions[PREDICTIONS_SIZE];
} Manifest;

/** Reads the manifest among `files` in the folder `prefix` ("" or "ada/"), and compares the files
 *  with it. */
Manifest manifest_of(const Files *files, const char *prefix);
