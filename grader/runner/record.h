/** @file
 * Inside the recorder: what a function of MPI calls around its PMPI_ twin.
 */
#ifndef BALISE_GRADER_RECORD_H
#define BALISE_GRADER_RECORD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "grader/calls.h"

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

int size_of(MPI_Comm comm);

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

/** A message to or from one rank; MPI_ANY_SOURCE and MPI_ANY_TAG too. */
void sends_message(Call *call, MPI_Comm comm, int to, int tag, int64_t count, MPI_Datatype type);
void receives_message(Call *call, MPI_Comm comm, int from, int tag, int64_t count, MPI_Datatype type);

Signature signature_of(int64_t count, MPI_Datatype type);
uint64_t reduction_of(MPI_Op op);

/* ---- communicators -------------------------------------------------------------------------------------------------- */

typedef struct CommName {
    MPI_Comm comm;
    uint64_t id, members;
    int32_t size, order[MAX_RANKS]; /**< rank in the launch of each of its ranks */
    int64_t collectives;            /**< since the case began */
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

/** A message from anybody came from somebody. */
void came_from(Call *call, MPI_Comm comm, const MPI_Status *status);

/** The call at `index` of this rank's ring, or NULL when it is no longer there; and the index of the one it is in. */
Call *call_at(int64_t index);
int64_t index_of_current(void);

/* ---- objects -------------------------------------------------------------------------------------------------------- */

typedef enum ObjectKind { COMMUNICATOR, DATATYPE, GROUP, OPERATION_OF_ONES_OWN, OBJECT_KINDS } ObjectKind;

void objects_begin(void);
/** The code at `maker` has made one, or has freed it. Only what a lab makes itself is kept in mind. */
void object_made(ObjectKind kind, const void *handle, const void *maker);
void object_freed(const void *handle);

#endif
