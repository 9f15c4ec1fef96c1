/** @file
 * Inside the recorder: what a function of MPI calls around its PMPI_ twin.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "grader/calls.h"
#include "grader/runner/flight.h"

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

/** What this rank is charged with: `elements` of `type`, and a call if it is a collective. */
void charge(bool collective, double elements, MPI_Datatype type);
/** It takes part in the making of a communicator. */
void charge_communicator(void);
/** It sends an empty message. */
void charge_nothing(void);

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
