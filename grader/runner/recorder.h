/** @file
 * The flight recorder: every MPI call of the student's code passes through here (PMPI), whether
 * direct or through the kit's functions. It records this rank's calls in shared memory, counts what
 * is sent, substitutes the case's ranks for MPI_COMM_WORLD, and tracks what was not waited for or
 * not freed. Its state is process-wide, because PMPI passes no context.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "grader/protocol.h"

/** What is charged to this rank. */
typedef struct Traffic {
    double elements; /**< elements of 4 bytes: this rank's share of the traffic */
    int64_t calls;   /**< of collectives; messages are limited by their elements instead */
    int64_t empty;   /**< messages without data */
    int64_t made;    /**< communicators created */
} Traffic;

/** Starts recording calls in `header` and in `rings`, which it resets; MPI_COMM_WORLD now means
 *  `world`. The case's `number` is the same on every rank. In a case with micro-batches, a call
 *  gets the line of the schedule that led to it, not the line of the function in which all messages
 *  are sent. */
void recorder_begin(RankHeader *header, Rings *rings, MPI_Comm world, const Case *c, int number);
/** Stops recording; MPI_COMM_WORLD has its usual meaning again. */
void recorder_end(void);

/** Is a case running? */
bool recorder_active(void);

/** What this rank is doing, according to its header. */
Label recorder_place(void);
/** Has this rank done the same before, with the same sizes? See is_repeated(). */
bool recorder_repeats(void);

/** Is a wrapped function, which will return to `caller`, called by the lab? The kit's functions call
 *  it too, and the C library for either of them. */
bool is_called_by_lab(const void *caller);

/** Makes MPI errors end the case, in every communicator, including those created later. */
void recorder_catch_errors(void);

/** Everything charged since recorder_begin(). */
Traffic recorder_traffic(void);

/** The number of requests that were started and neither waited for nor found complete. */
int64_t recorder_open_requests(void);
/** Marks their calls: a pass has ended before they were complete. Returns how many. */
int64_t recorder_open_requests_are_late(void);

/** Reports each line on which MPI objects or blocks of memory were created again and again, and not
 *  freed: their number would keep growing. `alone`: no other case of the launch can show it. */
void recorder_left_behind(bool alone, void (*tell)(const char *what, int64_t count, void *address));

/** From now on counts each poll of MPI in `header->asked`. */
void yield_begin(RankHeader *header);

/** Writes an operation of any tape to the Rings `context`: see Observer. */
void operation_note(void *context, const char *function, void *address, const Tensor *output,
                    int inputs, Tensor *const *input, bool back);

/** Has the case's lab a function that only starts exchanges? Then a pass may end before they do. */
bool recorder_only_starts(void);

/* ---- inside: for the wrappers of MPI functions ----------------------------------------------------------------------- */

/** The case's ranks, in place of MPI_COMM_WORLD. */
MPI_Comm substituted(MPI_Comm comm);

/** Begins the record of a call that this rank is about to enter. NULL if nothing is recorded:
 *  outside a case, and for MPI's internal calls. */
Call *call_of(const char *name, MPI_Comm comm, Rule rule);

/** Marks the call as one that returns at once and is waited for later. */
static inline Call *begins(Call *call)
{
    if (call)
        call->starts = 1;
    return call;
}

/** Enters the call, and publishes where this rank waits. */
void enter(Call *call);
/** Leaves this rank's current call. Returns `result`, MPI's return value. */
int leave(int result);

/** Enters a call in which the rank remains while the lab goes on, because the lab polls. */
void stays_in(Call *call);
/** Ends such a call. */
void stays_no_longer(Call *call);
/** A number that changes with each operation, each product, and each call of a function that must
 *  return at once. */
int64_t operations_so_far(void);
/** A number that changes with each recorded call, each operation and each product. */
int64_t progress(void);
/** Call this in a case when a poll (MPI_Test, MPI_Iprobe) has found nothing. *call becomes the call
 *  in which the rank waits, or NULL if it does not yet: pass one to poll_waits_in().
 *  @return how many such polls followed each other; 0 after poll_is_mixed() */
int64_t polled_in_vain(Call **call);
/** The rank waits in this call, which is not entered yet, until poll_ends(). Ignores NULL. */
void poll_waits_in(Call *call);
/** The lab polls for messages of several kinds, so it does not count as waiting for one of them. */
void poll_is_mixed(void);
/** The lab has found what it polled for, or does something else. */
void poll_ends(void);

/** Charges this rank with `elements` of `type` and, for a collective, with a call. Counts messages
 *  without elements separately. */
void charge(bool collective, double elements, MPI_Datatype type);
/** Charges this rank with the creation of a communicator. */
void charge_communicator(void);

/** The number of ranks in a communicator. */
int size_of(MPI_Comm comm);
/** This rank's number in a communicator. */
int rank_in(MPI_Comm comm);
/** The signature of `count` elements of `type`. */
Signature signature_of(int64_t count, MPI_Datatype type);
/** The Reduction of an MPI operation. */
int reduction_of(MPI_Op op);

/* ---- communicators -------------------------------------------------------------------------------------------------- */

/** The recorder's data about a communicator. */
typedef struct CommName {
    MPI_Comm comm;                  /**< MPI's handle */
    uint64_t id, members;           /**< as Call.group and Call.members */
    int32_t size, order[MAX_RANKS]; /**< number of its ranks; the rank of each in the launch */
    int64_t collectives;            /**< how many were called since the case began */
    bool own;                       /**< created by the lab and not adopted by a group */
    uint64_t of_case;               /**< the number of the case that created it */
} CommName;

/** Counts the collectives of each communicator from 0 again, and identifies the case's communicator
 *  `world` as THE_WORLD. Call this when a case begins; its `number` is the same on every rank. */
void names_begin(MPI_Comm world, int number);
/** The recorder's data about a communicator; the recorder owns them. */
CommName *named(MPI_Comm comm);
/** Does a communicator belong to a group of an earlier case? */
bool is_of_earlier_case(MPI_Comm comm);
/** The launch's number for rank `rank` of a communicator; NOBODY if the communicator has no such
 *  rank. */
int launch_rank(MPI_Comm comm, int rank);
/** The rank for which launch_rank() last returned NOBODY in this case, or MPI_PROC_NULL. */
int missing_rank(void);

/* ---- requests ------------------------------------------------------------------------------------------------------- */

/** Forgets all requests. Call this when a case begins. */
void requests_begin(void);
/** The same for tags. */
void messages_begin(void);
/** Records that this rank's current call has started `request` on comm. Returns `result`. */
int request_started(Call *call, int result, MPI_Comm comm, MPI_Request request);

/** The size in bytes of `count` contiguous elements; 0 for a type with gaps, whose buffers are left
 *  alone. */
size_t bytes_side_by_side(double count, MPI_Datatype type);
/** The memory of a buffer or of a part of one. */
typedef struct Piece {
    uintptr_t begin, end; /**< addresses; `end` is not included */
} Piece;
/** The memory of `count` elements; empty for MPI_IN_PLACE and types with gaps. */
Piece piece_of(const void *buffer, double count, MPI_Datatype type);
/** The memory of a buffer whose parts may lie apart. What lies between them is not part of it. */
typedef struct MemoryPieces {
    int count;              /**< how many pieces */
    Piece piece[MAX_RANKS]; /**< in any order */
} MemoryPieces;
/** A buffer of one piece. */
static inline MemoryPieces one_piece(Piece piece)
{
    return (MemoryPieces){1, {piece}};
}
/** Do these pieces have a byte in common? */
static inline bool pieces_overlap(Piece a, Piece b)
{
    return a.begin < b.end && b.begin < a.end && a.begin < a.end && b.begin < b.end;
}
/** Ends the case if `piece`, which the call sends or (`fills`) receives, overlaps the memory of an
 *  operation that this pass has in progress, unless both send (MPI 3.1, 3.7.2 and 5.12). Ignores a
 *  NULL call. */
void refuse_in_flight(const Call *call, Piece piece, bool fills);
/** Records that the call sends these pieces, which must not change until it is complete (MPI 4.0,
 *  3.7.2 and 6.12). Like lands(), ignores a NULL call and empty pieces. */
void departs(const Call *call, MemoryPieces sent);
/** Records that the call receives these pieces of `out`, or (`most` > 0) a message of at most the size
 *  of the only piece, whose first `most` bytes are marked: no message may fill the rest.
 *  Returns the buffer to give to MPI; until completion, the pieces hold marks. */
void *lands(const Call *call, void *out, MemoryPieces received, size_t most);

/** Records who sent the message that a wildcard receive got. `known` is the communicator's. If the lab
 *  gets the status (`told`), a tag says something. */
void came_from(Call *call, const CommName *known, const MPI_Status *status, bool told);
/** The call cannot wait, such as a wait for nothing. Ignores NULL. */
static inline void waits_for_nothing(Call *call)
{
    if (call)
        call->at_once = 0;
}

/** The call at `index` of this rank's ring, or NULL if it was overwritten. */
Call *call_at(int64_t index);
/** The index of this rank's current call. */
int64_t index_of_current(void);

/* ---- objects -------------------------------------------------------------------------------------------------------- */

/** Objects that a lab may leave behind. */
typedef enum ObjectKind {
    COMMUNICATOR,    /**< MPI_Comm */
    GROUP,           /**< MPI_Group */
    BLOCK_OF_MEMORY, /**< from malloc and similar functions */
    OBJECT_KINDS,    /**< how many there are */
} ObjectKind;

/** Forgets all MPI objects. Call this when a case begins. */
void objects_begin(void);
/** The bytes that the lab has changed since objects_begin() in blocks of memory of earlier cases. */
int64_t objects_changed(void);
/** Records that the code at `maker` created an object. Tracks only what the lab itself creates, and
 *  the communicators of the groups that it makes. */
void object_made(ObjectKind kind, const void *handle, const void *maker);
/** Records that an object was freed. Ignores a handle that no object of this kind has. */
void object_freed(ObjectKind kind, const void *handle);
