/** @file
 * What went wrong, for people: one line what, one line where, one line HINT.
 *
 * A function that can fail on bad input takes a `Problem *` last and returns false or NULL after filling it;
 * the program prints it once, on one rank, and exits with 2.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/cxx.h"

BEGIN_C

/** One thing that went wrong. Filled by whoever finds it, printed by the program; owns nothing. */
typedef struct Problem {
    char what[768];  /**< one sentence: what is wrong, with the numbers in it */
    char where[256]; /**< file, line or row; empty when there is no such place */
    char hint[512];  /**< what to do next */
} Problem;

/** Fills `problem` and returns false, so that a check can `return problem_set(...)`. `where` may be NULL; `format` and what
 *  follows make the sentence `what`, as in printf; both are said in the reader's language (language.h). Texts that are too long are cut. */
bool problem_set(Problem *problem, const char *where, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Prints `problem` as `error: what`, `  at where`, `  HINT: hint`, with one write. */
void problem_print(FILE *stream, const Problem *problem);

END_C
