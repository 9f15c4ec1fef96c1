/** @file
 * Calls of several ranks that belong together: those of a group by their number in it, messages by their order from one
 * rank to another.
 */
#pragma once

#include "grader/judge/mpi/recorded.h"

/** One call, or one half of a call that sends and receives. */
typedef struct Part {
    const Call *call; /**< belongs to the Calls that it was made from */
    int rank;         /**< of the launch */
    int64_t index;    /**< of the call among its rank's */
    bool receives;    /**< of messages */
} Part;

/** Parts in an order in which those that meet are neighbours; `part` is the caller's to free. */
typedef struct Parts {
    Part *part;    /**< [count] */
    int64_t count; /**< of parts */
} Parts;

/** All calls that have a number in their group, those of one number together and by rank. */
Parts together_of(const Calls *calls);

/** All halves of messages, sends and receives of one channel (group, sender, receiver, tag) together, the sends first, each
 *  in the order in which they were posted. Receives from anybody, or of any tag, that got no message yet, are in no channel
 *  of their own: see is_loose(). */
Parts messages_of(const Calls *calls);
/** Are these messages of one group, sender, receiver and tag? */
bool same_channel(const Part *a, const Part *b);
/** Is it a receive from anybody, or of any tag, that got no message yet? */
bool is_loose(const Part *part);

/** The end of the run of parts that begins at i and in which `same` holds with the first. */
int64_t run_end(const Parts *parts, int64_t i, bool (*same)(const Part *, const Part *));
/** Are these the same call of the same group? */
bool same_number(const Part *a, const Part *b);

/** Did the ring of one of these ranks lose calls? Then what is not there may have been. */
bool has_lost(const Calls *calls, uint64_t members);

/** What MPI forbids in two calls that meet as one of their group; NO_DIFFERENCE if they fit. */
DifferenceKind misfit(const Part *a, const Part *b);
/** And in a message of `sent` that meets a receive. */
DifferenceKind misfit_of_message(const Signature *sent, const Signature *received);
