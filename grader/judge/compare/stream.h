/** @file
 * The entries of a stream, in order.
 */
#pragma once

#include "base/problem.h"
#include "grader/protocol.h"

/** Consecutive entries: the bytes begin..end of a stream. */
typedef struct Entries {
    char *base;         /**< start of the stream */
    int64_t begin, end; /**< range of these entries */
} Entries;

/** The entry after `last` (the first if `last` is NULL); NULL at the end or if it is invalid. */
const Entry *next_entry(Entries in, const Entry *last);
/** The first entry with this kind and label, or NULL. */
const Entry *find_entry(Entries in, int kind, Label label);
/** The first entry of this kind, or NULL. */
const Entry *first_entry(Entries in, int kind);
/** The entry->count numbers after an entry. */
static inline const double *numbers_of(const Entry *entry)
{
    return (const double *)(entry + 1);
}
/** The text of a NOTE or REFUSED entry; NULL without an entry, or if the entry is too short. */
const Problem *problem_of(const Entry *entry);
