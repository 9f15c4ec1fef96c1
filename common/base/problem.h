/** @file
 * An error for people: what is wrong, where (if known), and a HINT, each on a line.
 *
 * A function that can fail on bad input takes a `Problem *` last, fills it and returns false or
 * NULL. The program prints it once, on one rank, and exits with 2.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/cxx.h"

BEGIN_C

/** An error. The function that detects it fills this record; the program prints it. The record owns
 *  no memory. */
typedef struct Problem {
    char what[2048]; /**< what is wrong: a sentence with numbers, perhaps a list */
    char where[256]; /**< file, line or row; empty if there is none */
    char hint[512];  /**< what to do next */
} Problem;

/** Replaces control characters in `what` and `where`, whose newlines stay. */
void problem_clean(Problem *problem);

/** Fills `problem` and returns false, so a check can `return problem_set(...)`. `where` may be
 *  NULL; `format` and its arguments make `what`, as in printf. `hint` and `format` are translated
 *  (language.h). Texts that are too long are truncated. `what` and `where` may quote names from
 *  files of others, so their control characters become '?'. */
bool problem_set(Problem *problem, const char *where, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Call this once, in main. If the program ends without having written all of its standard output,
 *  it reports that and exits with 2. */
void problem_if_output_is_lost(void);

/** Prints `problem` as `error: what`, `  at where` (unless it is empty), `  HINT: hint`, with one
 *  write; on a terminal, in lines of at most 80 characters. */
void problem_print(FILE *stream, const Problem *problem);

END_C
