/** @file
 * What must come out of a case: computed by the judge, in double precision.
 */
#pragma once

#include "base/problem.h"
#include "grader/labs/lab.h"

/** Ends with `problem` on stderr. Each program of the judge has one. */
_Noreturn void give_up(const Problem *problem);
/** The same for a problem of these words; `format` is in the reader's language already, `hint` is not. */
_Noreturn void give_up_with(const char *hint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Entries that stand one behind the other: the bytes begin..end of a stream. */
typedef struct Entries {
    char *base;         /**< of the stream */
    int64_t begin, end; /**< of these entries in it */
} Entries;

/** What a rank must write in a case. */
typedef struct Expected {
    Entries all;     /**< exactly */
    bool has_spread; /**< expected_spread() may be asked */
} Expected;

/** Writes what rank `rank` must see, by the scenario or the expectation of the case. */
ExpectFunction write_expected;

/** Plays the case in double precision as rank `rank` must see it (for layers each rank sees the same).
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

/** The entry that follows `last` (NULL: the first), or NULL at the end or where it makes no sense. */
const Entry *next_entry(Entries in, const Entry *last);
/** The first entry with this kind and label, or NULL. */
const Entry *find_entry(Entries in, int kind, Label label);
/** The first entry of this kind, or NULL. */
const Entry *first_entry(Entries in, int kind);
/** The numbers that follow an entry, entry->count of them. */
static inline const double *numbers_of(const Entry *entry)
{
    return (const double *)(entry + 1);
}
