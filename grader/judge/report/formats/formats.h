/** @file
 * The grader's output formats: one writer each, all from the same verdict.
 */
#pragma once

#include <jansson.h>

#include "base/replacement.h"
#include "grader/judge/report/verdict.h"

/** Returns the whole text of a file; the caller frees it. */
typedef char *FormatWriter(const Verdict *verdict);

/** The writers of all formats. */
FormatWriter json_text, junit_text, tap_text, gradescope_text, autolab_text, github_text;

/** A format. */
typedef struct Format {
    const char *name;     /**< as in FORMAT */
    FormatWriter *writer; /**< makes its text */
    OutputKind kind;      /**< what its files may replace */
} Format;

/** The format with this name, or NULL with `problem`. */
const Format *format_of(const char *name, Problem *problem);

/* ---- shared by several formats ------------------------------------------------------------------------- */

/** "Lab 4 MultiHeadSelfAttention: forward" */
void check_title(const LabResult *lab, Check check, char title[160]);

/** "labs/04-attention/attention.c" */
void lab_path(const LabResult *lab, char path[160]);

/** Writes check_reason() and, if the check failed, the command that repeats it. */
void check_output(const Verdict *verdict, const LabResult *lab, Check check, char *text,
                  size_t size);
enum { OUTPUT_SIZE = REASON_SIZE + 200 }; /**< bytes of an output */

/** Finds "FILE:LINE" of the lab's file in a text. Returns the line of the compiler's first error,
 *  or else the first line named, or 0. */
int line_named(const LabResult *lab, const char *text);

/** A check in the json format: name, status, points, of. If it failed, also reason, explained, case
 *  and again; if it is held back, also reason. */
json_t *check_json(const Verdict *verdict, const LabResult *lab, Check check);

/** The JSON text, indented, with a final newline. Frees `json`; the caller frees the text. */
char *json_file(json_t *json);
