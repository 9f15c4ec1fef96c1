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
static inline void begins(Call *call)
{
    if (call)
        call->starts = 1;
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
/** The sum of one count for each rank of the communicator. */
double sum_of(const int counts[], MPI_Comm comm);
/** Without this rank's. */
double sum_of_others(const int counts[], MPI_Comm comm);

/** This rank's share of what an all-reduce of `count` numbers sends. */
double all_reduce_share(MPI_Comm comm, double count);
/** This rank's share of what a gather of `whole_count` numbers sends. */
double gather_share(MPI_Comm comm, double whole_count);

/* ---- what a call says: each does nothing for NULL ------------------------------------------------------------------ */

enum { EACH = -1000 }; /**< every rank of the communicator */

/** Every rank brings `count` of `type`. `root` is a rank of the communicator, or MPI_PROC_NULL. */
void reduces(Call *call, MPI_Comm comm, int64_t count, MPI_Datatype type, MPI_Op op, int root);
/** Every rank brings all of `counts`, and gets its own part of the result. */
void reduces_parts(Call *call, MPI_Comm comm, const int counts[], MPI_Datatype type, MPI_Op op);

/** This call sends `count` of `type` to rank `to` of the communicator, or to EACH. */
void sends(Call *call, MPI_Comm comm, int to, int64_t count, MPI_Datatype type);
/** This call expects `count` of `type` of rank `from` of the communicator, or of EACH. */
void receives(Call *call, MPI_Comm comm, int from, int64_t count, MPI_Datatype type);
/** This call has a root: a rank of the communicator. */
void has_root(Call *call, MPI_Comm comm, int root);

/** What a rank sends to each other one, and expects of it (MPI 3.1, chapter 5); arguments that count on the root alone are
 *  looked at there alone. With
 *  an `in` of MPI_IN_PLACE what is sent is said by what is received. `counts` are those of parts of several sizes; of gathers() and scatters()
 *  also NULL: one count for each. This is Bcast: the root sends `count` to each. */
void broadcasts(Call *call, MPI_Comm comm, int count, MPI_Datatype type, int root);
/** Allgather: every rank sends `count` to each, and expects `out_count` of it. */
void gathers_all(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
                 int out_count, MPI_Datatype out_type);
/** Allgatherv: the parts are of several sizes. */
void gathers_all_parts(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
                       const int counts[], MPI_Datatype out_type);
/** Gather and Gatherv: the root expects of each rank `out_count`, or counts[i]. */
void gathers(Call *call, MPI_Comm comm, int count, MPI_Datatype type, int out_count,
             const int counts[], MPI_Datatype out_type, int root);
/** Scatter and Scatterv: the root sends to each rank `count`, or counts[i]. */
void scatters(Call *call, MPI_Comm comm, int count, const int counts[], MPI_Datatype type,
              int out_count, MPI_Datatype out_type, int root);
/** Alltoall: every rank sends to each, and expects of each. */
void exchanges_all(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
                   int out_count, MPI_Datatype out_type);
/** Alltoallv: the parts are of several sizes. */
void exchanges_all_parts(Call *call, MPI_Comm comm, const void *in, const int counts[],
                         MPI_Datatype type, const int out_counts[], MPI_Datatype out_type);

/** A message to or from one rank; MPI_ANY_SOURCE and MPI_ANY_TAG too. */
void sends_message(Call *call, MPI_Comm comm, int to, int tag, int64_t count, MPI_Datatype type);
/** A message from one rank, or from MPI_ANY_SOURCE, with a tag or MPI_ANY_TAG. */
void receives_message(Call *call, MPI_Comm comm, int from, int tag, int64_t count,
                      MPI_Datatype type);

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

/** The rank whose message a receive from anybody takes: waits until there is one. Another `from` is returned as it is. */
int from_whom(const Call *call, MPI_Comm comm, int from, int tag);

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
