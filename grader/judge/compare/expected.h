/** @file
 * What must come out of a case: computed by the judge, in double precision.
 */
#pragma once

#include "base/problem.h"
#include "grader/judge/compare/stream.h"
#include "grader/labs/lab.h"

/** Ends with `problem` on stderr. Each program of the judge has one. */
_Noreturn void give_up(const Problem *problem);
/** The same for a problem of these words; `format` is in the reader's language already, `hint` is not. */
_Noreturn void give_up_with(const char *hint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** What a rank must write in a case. */
typedef struct Expected {
    Entries all;     /**< exactly */
    bool has_spread; /**< expected_spread() may be asked */
} Expected;

/** Writes what rank `rank` must see, by the scenario or the expectation of the case. */
ExpectFunction write_expected;

/** Runs the case in double precision as rank `rank` must see it (for layers each rank sees the same).
 *  `rounded` says how many runs in emulated single precision to add, for expected_spread(); 0 for a suspect. What is expected
 *  with a spread holds until another such is. To be freed with expected_free(). */
Expected expect(const Case *c, int rank, int suspect, int rounded);
/** Keeps what expect() computes in this folder, and takes from there what an earlier run of the same judge has kept. */
void keep_expected(const char *folder);
/** Frees the stream, not the record itself. */
void expected_free(Expected *expected);

/** Ends the second process in which the judge computes: there are none but the judge and the ranks while ranks live. */
void expect_ranks(void);

/** The largest distance of a number in single precision from that in `exact`, an entry of `expected`. */
double expected_spread(const Expected *expected, const Entry *exact);
