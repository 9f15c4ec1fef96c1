/** @file
 * The flight recorder: every call of MPI that the student's code makes, through the kit's functions or directly,
 * passes here (PMPI). It writes down in shared memory what this rank calls, counts what is sent, hands out the
 * case's ranks for MPI_COMM_WORLD, and knows what nobody has waited for or given back. It is the one
 * process-wide state of the runner: PMPI passes no context.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "grader/protocol.h"

/** What this rank is charged with. */
typedef struct Traffic {
    double elements; /**< of 4 bytes: this rank's share of what crosses the wire */
    int64_t calls;   /**< of collectives; a ring of messages is bounded by what it sends */
    int64_t empty;   /**< messages without a number */
    int64_t made;    /**< communicators */
} Traffic;

/** From now on calls are recorded in `header` and in `rings`, which begin anew, and MPI_COMM_WORLD means `world`.
 *  `number` is that of the case, the same on every rank. */
void recorder_begin(RankHeader *header, Rings *rings, MPI_Comm world, int number);
/** Nothing is recorded from now on, and MPI_COMM_WORLD means what it does. */
void recorder_end(void);

/** Is a case being run? */
bool recorder_active(void);

/** What this rank is at. */
Label recorder_place(void);

/** Errors of MPI end the case from now on, in every communicator made later too. */
void recorder_catch_errors(void);

/** Everything since recorder_begin(). */
Traffic recorder_traffic(void);

/** Requests that were started and neither waited for nor found complete. */
int64_t recorder_open_requests(void);

/** Tells of each line on which several objects of MPI were made that are still there: they would become more and more. */
void recorder_left_behind(void (*tell)(const char *what, int64_t count, void *address));

/** From now on each look of MPI for what it waits for is counted in `header->asked`; see yield.c. */
void yield_begin(RankHeader *header);

struct Tape; /**< see autograd/tape.h */
/** From now on what a lab calls whole on this tape, values and gradients, is written to `rings`, for the judge to compare: every rank of
 *  a tp group should hold it alike. */
void values_watch(struct Tape *tape, Rings *rings);

/* ---- inside: what a function of MPI calls around its PMPI_ twin ------------------------------------------------------ */

/** The case's ranks for MPI_COMM_WORLD. */
MPI_Comm substituted(MPI_Comm comm);

/** A call that this rank is about to enter, to be described below. NULL where nothing is recorded: outside a case, and what
 *  MPI calls of itself. */
Call *call_of(const char *name, MPI_Comm comm, Rule rule);

/** That it returns at once, and that somebody waits for it later. */
static inline Call *begins(Call *call)
{
    if (call)
        call->starts = 1;
    return call;
}

/** This rank enters the call, and says in shared memory where it waits. */
void enter(Call *call);
/** Leaves the call that this rank is in. Returns `result`, what MPI has returned. */
int leave(int result);

/** What this rank is charged with: `elements` of `type`; and a call, or without any an empty message. */
void charge(bool collective, double elements, MPI_Datatype type);
/** It takes part in the making of a communicator. */
void charge_communicator(void);

/** Ranks of a communicator. */
int size_of(MPI_Comm comm);
/** This rank's place in a communicator. */
int rank_in(MPI_Comm comm);
/** What `count` of `type` stand for. */
Signature signature_of(int64_t count, MPI_Datatype type);
/** The Reduction that an operation is. */
int reduction_of(MPI_Op op);

/* ---- communicators -------------------------------------------------------------------------------------------------- */

/** A communicator as the recorder knows it. */
typedef struct CommName {
    MPI_Comm comm;                  /**< MPI's handle */
    uint64_t id, members;           /**< as Call.group and Call.members */
    int32_t size, order[MAX_RANKS]; /**< rank in the launch of each of its ranks */
    int64_t collectives;            /**< since the case began */
    bool own;                       /**< a lab has made it itself, and no group has adopted it */
} CommName;

/** Forgets all communicators but `world`, that of the case: a case begins, whose `number` is the same on every rank. */
void names_begin(MPI_Comm world, int number);
/** What the recorder knows of a communicator. Belongs to it. */
CommName *named(MPI_Comm comm);
/** A rank of the communicator as one of the launch; NOBODY where there is none. */
int launch_rank(MPI_Comm comm, int rank);
/** The last one that there was none for. */
int missing_rank(void);

/* ---- requests ------------------------------------------------------------------------------------------------------- */

/** Forgets all requests: a case begins. */
void requests_begin(void);
/** The call that this rank is in has started `request`, on comm. Returns `result`. */
int request_started(Call *call, int result, MPI_Comm comm, MPI_Request request);

/** The call that is about to start sends `count` numbers from `in`: they must not change before it is complete (MPI 4.0, 3.7.2 and 6.12).
 *  Does nothing for a call of NULL, an empty buffer, MPI_IN_PLACE and types with gaps; as lands() does. */
void departs(const Call *call, const void *in, double count, MPI_Datatype type);
/** And receives as many into `out`, or, of a message, up to as many. Returns the buffer that MPI is to be given: until it is complete `out`
 *  holds marks. */
void *lands(const Call *call, void *out, double count, MPI_Datatype type, bool is_message);

/** A message from anybody came from somebody. */
void came_from(Call *call, MPI_Comm comm, const MPI_Status *status);

/** The call at `index` of this rank's ring, or NULL when it is no longer there. */
Call *call_at(int64_t index);
/** The index of the call that this rank is in. */
int64_t index_of_current(void);

/* ---- objects -------------------------------------------------------------------------------------------------------- */

/** What a lab may leave behind. */
typedef enum ObjectKind {
    COMMUNICATOR,    /**< MPI_Comm */
    GROUP,           /**< MPI_Group */
    BLOCK_OF_MEMORY, /**< of malloc and its kin */
    OBJECT_KINDS,    /**< how many there are */
} ObjectKind;

/** Forgets all objects: a case begins. */
void objects_begin(void);
/** The code at `maker` has made one, or has freed it. Only what a lab makes itself is kept in mind. */
void object_made(ObjectKind kind, const void *handle, const void *maker);
/** It has been given back. */
void object_freed(const void *handle);
