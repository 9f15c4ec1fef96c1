/** @file
 * Inside the recorder: what a function of MPI calls around its PMPI_ twin.
 */
#ifndef BALISE_GRADER_RECORD_H
#define BALISE_GRADER_RECORD_H

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

/** This rank enters the call (and says in shared memory where it waits), and leaves it with `result`. */
void enter(Call *call);
int leave(int result);

/** What this rank is charged with: `elements` of `type`, and a call if it is a collective. */
void charge(bool collective, double elements, MPI_Datatype type);
/** It takes part in the making of a communicator. */
void charge_communicator(void);
/** It sends an empty message. */
void charge_nothing(void);

int size_of(MPI_Comm comm);
int rank_in(MPI_Comm comm);
double sum_of(const int counts[], MPI_Comm comm);
/** Without this rank's. */
double sum_of_others(const int counts[], MPI_Comm comm);

/** This rank's share of what an all-reduce of `count` numbers sends, and a gather of `whole_count`. */
double all_reduce_share(MPI_Comm comm, double count);
double gather_share(MPI_Comm comm, double whole_count);

/* ---- what a call says: each does nothing for NULL ------------------------------------------------------------------ */

enum { EACH = -1000 };

/** Every rank brings `count` of `type`. @param root a rank of the communicator, or MPI_PROC_NULL */
void reduces(Call *call, MPI_Comm comm, int64_t count, MPI_Datatype type, MPI_Op op, int root);
void reduces_parts(Call *call, MPI_Comm comm, const int counts[], MPI_Datatype type, MPI_Op op);

/** @param to, from a rank of the communicator, or EACH */
void sends(Call *call, MPI_Comm comm, int to, int64_t count, MPI_Datatype type);
void receives(Call *call, MPI_Comm comm, int from, int64_t count, MPI_Datatype type);
void has_root(Call *call, MPI_Comm comm, int root);

/** What a rank sends to each other one, and expects of it (MPI 3.1, chapter 5); arguments that count on the root alone are
 *  looked at there alone.
 *  @param in MPI_IN_PLACE: what is sent is said by what is received
 *  @param counts of parts of several sizes; of gathers() and scatters() also NULL: one count for each */
void broadcasts(Call *call, MPI_Comm comm, int count, MPI_Datatype type, int root);
void gathers_all(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type, int out_count,
                 MPI_Datatype out_type);
void gathers_all_parts(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
                       const int counts[], MPI_Datatype out_type);
void gathers(Call *call, MPI_Comm comm, int count, MPI_Datatype type, int out_count, const int counts[],
             MPI_Datatype out_type, int root);
void scatters(Call *call, MPI_Comm comm, int count, const int counts[], MPI_Datatype type, int out_count,
              MPI_Datatype out_type, int root);
void exchanges_all(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type, int out_count,
                   MPI_Datatype out_type);
void exchanges_all_parts(Call *call, MPI_Comm comm, const void *in, const int counts[], MPI_Datatype type,
                         const int out_counts[], MPI_Datatype out_type);

/** A message to or from one rank; MPI_ANY_SOURCE and MPI_ANY_TAG too. */
void sends_message(Call *call, MPI_Comm comm, int to, int tag, int64_t count, MPI_Datatype type);
void receives_message(Call *call, MPI_Comm comm, int from, int tag, int64_t count, MPI_Datatype type);

/** That a message to this rank takes; none where there is no such rank. */
double bytes_of(int to, double count, MPI_Datatype type);
/** A buffered message needs a buffer of the lab's. */
void must_fit_buffer(const Call *call, double bytes);

Signature signature_of(int64_t count, MPI_Datatype type);
uint64_t reduction_of(MPI_Op op);

/* ---- communicators -------------------------------------------------------------------------------------------------- */

typedef struct CommName {
    MPI_Comm comm;
    uint64_t id, members;
    int32_t size, order[MAX_RANKS]; /**< rank in the launch of each of its ranks */
    int64_t collectives;            /**< since the case began */
    bool own;                       /**< a lab has made it itself, and no group has adopted it */
} CommName;

/** @param world the case's; @param number of the case, the same on every rank */
void names_begin(MPI_Comm world, int number);
CommName *named(MPI_Comm comm);
/** A rank of the communicator as one of the launch; NOBODY where there is none. */
int launch_rank(MPI_Comm comm, int rank);
/** The last one that there was none for. */
int missing_rank(void);

/* ---- requests ------------------------------------------------------------------------------------------------------- */

void requests_begin(void);
/** The call that this rank is in has started `request`, on comm. Returns `result`. */
int request_started(Call *call, int result, MPI_Comm comm, MPI_Request request);
/** A persistent one; its buffers stay the caller's. */
int request_started_again(Call *call, int result, MPI_Comm comm, MPI_Request request, const Flight *flight);

/** Is it under way? And one that nobody will wait for any more: only a message that is sent may end like that. */
bool request_is_open(MPI_Request request);
void request_let_go(MPI_Request request);
/** Ends the case where what was let go is still being sent from there, for all that this rank knows. */
void sent_memory_given_back(const void *begin, size_t bytes);

/** The rank whose message a receive from anybody takes: waits until there is one. Another `from` is returned as it is. */
int from_whom(const Call *call, MPI_Comm comm, int from, int tag);

/** A message from anybody came from somebody. */
void came_from(Call *call, MPI_Comm comm, const MPI_Status *status);

/** The call at `index` of this rank's ring, or NULL when it is no longer there; and the index of the one it is in. */
Call *call_at(int64_t index);
int64_t index_of_current(void);

/* ---- objects -------------------------------------------------------------------------------------------------------- */

typedef enum ObjectKind {
    COMMUNICATOR,
    DATATYPE,
    GROUP,
    OPERATION_OF_ONES_OWN,
    PERSISTENT_REQUEST,
    BLOCK_OF_MEMORY,
    OBJECT_KINDS
} ObjectKind;

void objects_begin(void);
/** The code at `maker` has made one, or has freed it. Only what a lab makes itself is kept in mind. */
void object_made(ObjectKind kind, const void *handle, const void *maker);
void object_freed(const void *handle);

#endif
