/** @file
 * The entries of a stream, one after the other.
 */
#pragma once

#include "grader/protocol.h"

/** Entries that stand one behind the other: the bytes begin..end of a stream. */
typedef struct Entries {
    char *base;         /**< of the stream */
    int64_t begin, end; /**< of these entries in it */
} Entries;

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
