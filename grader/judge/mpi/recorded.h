/** @file
 * What the ranks of a case have called, as the judge sees it: copies of their rings, the first call in which ranks that
 * should agree do not, and whether ranks that wait can still go on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "grader/protocol.h"

/** What one rank has called in a case. */
typedef struct RankCalls {
    int64_t first;        /**< calls made before those that are here: a ring keeps the last */
    int64_t count;        /**< of the calls that are here */
    Call *call;           /**< [count], in the order in which they were made */
    bool left;            /**< the rank has come to the end of the case */
    int64_t values_count; /**< of the values that are here */
    Value *value;         /**< the first ones: their ring is not written over */
} RankCalls;

/** What the ranks of a case have called. */
typedef struct Calls {
    int ranks;                 /**< that take part in the case */
    RankCalls rank[MAX_RANKS]; /**< by rank of the launch */
} Calls;

/** A copy in which nothing is out of bounds, whatever a rank has written.
 *  `posted` is the number of the case in this launch, from 1. To be freed with calls_free(). */
Calls *calls_copy(const Launch *launch, int ranks, int posted);
/** Frees the copy. NULL is allowed. */
void calls_free(Calls *calls);

/* ---- what does not fit ---------------------------------------------------------------------------------------------- */

/** In what two calls that meet do not fit. */
typedef enum DifferenceKind {
    NO_DIFFERENCE,    /**< they fit */
    OTHER_OPERATION,  /**< not the same call of the group */
    OTHER_ROOT,       /**< another rank is the root */
    OTHER_REDUCTION,  /**< sum against max, say */
    OTHER_TYPE,       /**< float against double, say */
    OTHER_COUNT,      /**< not as many numbers */
    NEVER_CALLED,     /**< one rank has made fewer calls */
    NEVER_RECEIVED,   /**< a message that no receive takes */
    NEVER_SENT,       /**< a receive that no message comes to */
    NOT_YET_RECEIVED, /**< sent as ready, before the receive was there */
    OTHER_PLACE, /**< fits, but belongs to something else that the ranks are at: no error of MPI */
    OTHER_LINE,  /**< fits, but stands on another line: no error of MPI, and often right */
} DifferenceKind;

/** Two calls that do not fit. */
typedef struct Difference {
    DifferenceKind kind; /**< in what */
    int rank[2];         /**< who made them */
    const Call *call[2]; /**< the second is NULL for what was never called, received or sent */
} Difference;

/** The first one in time that MPI forbids (MPI 3.1, 3.3.1 and 5.1); when `ended`, no more calls will come, and those that
 *  are missing count. Of calls that are NULL there is none. */
Difference first_error(const Calls *calls, bool ended);

/** The first place from which the ranks of a group go different ways: an error, OTHER_PLACE or, when `lines`, OTHER_LINE. */
Difference first_difference(const Calls *calls, bool ended, bool lines);

/** "rank 0 is in all_reduce #3 of {0,1} (144 float, sum) at attention.c:41; rank 1 ...". @return false without a difference */
bool difference_text(const Calls *calls, const Difference *d, char *text, size_t size);

/** Says since which line ranks of a tp group hold different numbers of what they call whole, if they do. */
bool replicas_diverge(const Calls *calls, const Case *c, char *text, size_t size);

/* ---- what a rank waits for ------------------------------------------------------------------------------------------ */

/** The call that a rank is in, or NULL. */
const Call *call_of_rank(const Calls *calls, int rank);

/** Does the wait at this index of the rank's calls wait for what `call` has begun? */
bool is_waited_for(const Call *call, int64_t by);

/** Can ranks that wait still go on? */
typedef enum Outlook {
    NONE_LEFT, /**< no rank waits for anything that can still come: proven by the calls alone */
    UNLIKELY,  /**< calls that do not fit have met, and MPI may make something of them */
    SOME,      /**< that depends on how MPI does it */
    ALL_THERE, /**< somewhere all that is waited for is there: MPI is at work */
} Outlook;

/** Of ranks that all wait in MPI or have left. */
Outlook outlook_of(const Calls *calls);

/* ---- text ----------------------------------------------------------------------------------------------------------- */

/** "all_reduce #3 of {0,1} (144 float, sum) at attention.c:41"; "of the same group" where it is that of `before`, which may be
 *  NULL */
void call_text(const Calls *calls, const Call *call, const Call *before, char *text, size_t size);
/** Appends "waits in all_reduce #3 ...", or "waits at attention.c:41 for the start of ..." */
void append_waiting(const Calls *calls, int rank, char *text, size_t size);
/** "all_reduce #3" */
const char *call_name(const Call *call, char text[64]);
/** "{0,1}" */
const char *group_text(const Call *call, char text[32]);
/** "144 float, sum" */
const char *call_what(const Call *call, char text[96]);

/** The runner whose lines are asked for from now on. */
void lines_of(const char *runner);
/** "attention.c:41", or an empty text. It holds while lines of this runner are asked for. */
const char *line_of(const void *address);

/** Appends as snprintf writes. */
void append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
