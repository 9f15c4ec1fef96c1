/** @file
 * The judge's view of the ranks' calls: copies of their ring buffers, the first call on which
 * ranks disagree, and whether waiting ranks can still progress.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "grader/protocol.h"

/** One rank's calls in a case. */
typedef struct RankCalls {
    int64_t first;            /**< calls made before these; the ring buffer keeps the last */
    int64_t count;            /**< number of calls here */
    Call *call;               /**< [count], in order */
    bool left;                /**< the rank has left the case, successfully or not */
    int64_t operations_count; /**< number of operations here */
    TapeOperation *operation; /**< the first ones: their ring buffer is not overwritten */
} RankCalls;

/** All ranks' calls in a case. */
typedef struct Calls {
    int ranks;                 /**< that take part in the case */
    RankCalls rank[MAX_RANKS]; /**< indexed by rank of the launch */
} Calls;

/** Copies the calls, with everything in bounds, whatever a rank has written. `posted` is the number
 *  of the case in this launch, from 1. Free the copy with calls_free(). */
Calls *calls_copy(const Launch *launch, int ranks, int posted);
/** Frees the copy. NULL is allowed. */
void calls_free(Calls *calls);

/* ---- mismatches ------------------------------------------------------------------------------------------------------ */

/** How two matching calls disagree. */
typedef enum DifferenceKind {
    NO_DIFFERENCE,    /**< they fit */
    OTHER_OPERATION,  /**< different calls of the group */
    OTHER_ROOT,       /**< different roots */
    OTHER_REDUCTION,  /**< for example, sum against max */
    OTHER_TYPE,       /**< for example, float against double */
    OTHER_COUNT,      /**< different numbers of elements */
    NEVER_CALLED,     /**< one rank made fewer calls */
    NEVER_RECEIVED,   /**< a message without a receive */
    NEVER_SENT,       /**< a receive without a message */
    NOT_YET_RECEIVED, /**< a ready send before its receive */
    OTHER_PLACE,      /**< they fit, but the ranks are in different places: no MPI error */
    OTHER_LINE,       /**< they fit, but are on different lines: no MPI error, and often right */
} DifferenceKind;

/** Two calls that disagree. */
typedef struct Difference {
    DifferenceKind kind; /**< how */
    int rank[2];         /**< who made them */
    const Call *call[2]; /**< the second is NULL if it was never made */
} Difference;

/** Finds the earliest difference that MPI forbids (MPI 3.1, 3.3.1 and 5.1). If `ended`, no more
 *  calls will come, so missing calls count. Returns none if `calls` is NULL. */
Difference first_error(const Calls *calls, bool ended);

/** Finds where the ranks of a group first diverge: an error, OTHER_PLACE or, with `lines`,
 *  OTHER_LINE. */
Difference first_difference(const Calls *calls, bool ended, bool lines);

/** Writes "rank 0 is in all_reduce #3 of {0,1} (144 float, sum) at attention.c:41; rank 1 ...".
 *  @return false without a difference */
bool difference_text(const Calls *calls, const Difference *d, char *text, size_t size);

/** Writes the first line after which the ranks of a tp group hold different numbers for a whole
 *  tensor. With `only_results`, leaves out gradients, which cannot explain a wrong forward pass.
 *  @return false if no numbers differ */
bool replicas_diverge(const Calls *calls, const Case *c, bool only_results, char *text,
                      size_t size);

/* ---- what a rank waits for ------------------------------------------------------------------------------------------ */

/** The call that a rank is in, or NULL. */
const Call *call_of_rank(const Calls *calls, int rank);

/** Does the wait with this index among the rank's calls wait for what `call` started? */
bool is_waited_for(const Call *call, int64_t by);

/** Can waiting ranks still progress? */
typedef enum Outlook {
    NONE_LEFT, /**< no rank waits for anything that can still arrive: the calls alone prove it */
    UNLIKELY,  /**< calls that disagree have met; MPI may still complete them */
    SOME,      /**< it depends on MPI's implementation, or on whether the lab polls forever */
    ALL_THERE, /**< everything that some rank waits for is there: MPI is working */
} Outlook;

/** The best outlook of any waiting rank, if all ranks wait in MPI or have left. */
Outlook outlook_of(const Calls *calls);

/** The ranks (bit r: rank r) that have not done their part of what this rank waits for. */
uint64_t ranks_lacked(const Calls *calls, int rank);

/* ---- text ----------------------------------------------------------------------------------------------------------- */

/** Writes "all_reduce #3 of {0,1} (144 float, sum) at attention.c:41", or "of the same group" if
 *  `before`, which may be NULL, has that group. */
void call_text(const Calls *calls, const Call *call, const Call *before, char *text, size_t size);
/** The rank to which this rank waits to send, or NOBODY. */
int waits_to_send_to(const Calls *calls, int rank);
/** The rank from which this rank waits to receive, or NOBODY. */
int waits_to_receive_from(const Calls *calls, int rank);
/** Appends "waits in all_reduce #3 ..." or "waits at attention.c:41 for the send to rank 1 ...". */
void append_waiting(const Calls *calls, int rank, char *text, size_t size);
/** "all_reduce #3" */
const char *call_name(const Call *call, char text[64]);
/** "{0,1}" */
const char *group_text(const Call *call, char text[32]);
/** "144 float, sum" */
const char *call_what(const Call *call, char text[96]);

/** Selects the runner whose lines line_of() looks up. */
void lines_of(const char *runner);
/** Ends the process that looks up lines. The next line_of() starts one. */
void lines_rest(void);
/** "attention.c:41", or an empty text. Valid until another runner is selected. */
const char *line_of(const void *address);

/** The number of bytes sent or expected; 0 if a rank has written nonsense. */
double signature_bytes(const Signature *s);

/** Appends formatted text. */
void append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
