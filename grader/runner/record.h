/** @file
 * Inside the recorder: what a function of MPI calls around its PMPI_ twin.
 */
#ifndef BALISE_GRADER_RECORD_H
#define BALISE_GRADER_RECORD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/** The case's ranks for MPI_COMM_WORLD. */
MPI_Comm substituted(MPI_Comm comm);

/** This rank enters a call (and says in shared memory where it waits), and leaves it with `result`. */
void enter(const char *name, MPI_Comm comm, bool collective, int64_t count, MPI_Datatype type, int peer);
int leave(int result);

/** What this rank is charged with: `elements` of `type`, and a call if it is a collective. */
void charge(bool collective, double elements, MPI_Datatype type);

/** A communicator that is freed: its handle may come again for another one. */
void forget(MPI_Comm comm);

void request_started(void);
void requests_ended(int64_t count);

int size_of(MPI_Comm comm);

/** This rank's share of what an all-reduce of `count` numbers sends, and a gather of `whole_count`. */
double all_reduce_share(MPI_Comm comm, double count);
double gather_share(MPI_Comm comm, double whole_count);

#endif
