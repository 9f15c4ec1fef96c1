/** @file
 * Matches the calls of several ranks: collectives by their number in the group, messages by their
 * order from one rank to another.
 */
#pragma once

#include "grader/judge/mpi/recorded.h"

/** One call, or one half of a call that sends and receives. */
typedef struct Part {
    const Call *call; /**< belongs to the Calls */
    int rank;         /**< of the launch */
    int64_t index;    /**< index among the rank's calls */
    bool receives;    /**< for messages */
} Part;

/** Parts, sorted so that those that match are adjacent. The caller frees `part`. */
typedef struct Parts {
    Part *part;    /**< [count] */
    int64_t count; /**< of parts */
} Parts;

/** All calls that have a number in their group, sorted by group, number and rank. */
Parts together_of(const Calls *calls);

/** All halves of messages. Sends and receives of one channel (group, sender, receiver, tag) are
 *  together, the sends first, each in posting order. Receives with a wildcard that got no message
 *  yet are in no channel: see is_loose(). */
Parts messages_of(const Calls *calls);
/** Do these messages have the same group, sender, receiver and tag? */
bool same_channel(const Part *a, const Part *b);
/** Is this part a receive with a wildcard that got no message yet? */
bool is_loose(const Part *part);

/** The end of the run of parts, starting at i, that are the `same` as the first. */
int64_t run_end(const Parts *parts, int64_t i, bool (*same)(const Part *, const Part *));
/** The parts of all ranks in the same call as `mine`. */
const Part *with_number(const Parts *together, const Part *mine, int64_t *count);
/** Are these the same call of the same group? */
bool same_number(const Part *a, const Part *b);

/** Did the ring buffer of one of these ranks overflow? Then missing calls may have been made. */
bool has_lost(const Calls *calls, uint64_t members);

/** If one rank makes the blocking form of a call and another the nonblocking one: appends which
 *  rank has left a call out or, if all else is equal, that the forms differ.
 *  @return false for other differences */
bool append_form(const Calls *calls, const Difference *d, char *text, size_t size);

/** How two calls that match in their group break MPI's rules; NO_DIFFERENCE if they fit. */
DifferenceKind misfit(const Part *a, const Part *b);
/** Like misfit(), for a message with signature `sent` and its receive. */
DifferenceKind misfit_of_message(const Signature *sent, const Signature *received);
