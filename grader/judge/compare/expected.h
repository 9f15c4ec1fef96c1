/** @file
 * The expected values of a case, which the judge computes in double precision.
 */
#pragma once

#include "base/problem.h"
#include "grader/judge/compare/stream.h"
#include "grader/labs/lab.h"

/** Prints `problem` on stderr and exits with 2. */
_Noreturn void give_up(const Problem *problem);
/** Like give_up(), for a problem given as text; `format` is already translated, `hint` is not. */
_Noreturn void give_up_with(const char *hint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The entries that a rank must write in a case. */
typedef struct Expected {
    Entries all;     /**< the exact values */
    bool has_spread; /**< expected_spread() is available */
} Expected;

/** What expect() computes. */
typedef enum Expectation {
    THE_NUMBERS,    /**< the entries that the rank must write */
    THE_PROGRAM,    /**< the same, and the operations of each pass */
    PAST_THE_LAYER, /**< the entries if no gradient came back through a layer to its x */
} Expectation;

/** Writes the entries of rank `rank`, from the case's scenario or expectation. */
void write_expected(const Case *c, int rank, Expectation what, Stream stream);

/** Runs the case in double precision, as rank `rank` must see it (for layers, all ranks see the
 *  same). `rounded` is the number of additional runs in emulated single precision, for
 *  expected_spread(). If `rounded` is above 0, the result is valid until the next
 *  such call. Free it with expected_free(). */
Expected expect(const Case *c, int rank, Expectation what, int rounded);
/** Makes expect() keep its results in this folder, and reuse those of an earlier run of the same
 *  judge. */
void keep_expected(const char *folder);
/** Frees the entries, but not the record itself. */
void expected_free(Expected *expected);

/** Is there room for a rank's record of this case, half of a stream? */
bool expected_fits(const Case *c);

/** Ends the judge's second process, because while ranks run, there must be no processes except the
 *  judge and the ranks. */
void expect_ranks(void);

/** The largest distance of a number in emulated single precision from its value in `exact`, an
 *  entry of `expected`. */
double expected_spread(const Expected *expected, const Entry *exact);
