/** @file
 * The flight recorder: every call of MPI that the student's code makes, through the kit's words or directly,
 * passes here (PMPI). It says in shared memory where this rank is, counts what is sent, hands out the case's
 * ranks for MPI_COMM_WORLD, and keeps the number of requests that nobody has waited for. It is the one
 * process-wide state of the runner: PMPI passes no context.
 */
#ifndef BALISE_GRADER_RECORDER_H
#define BALISE_GRADER_RECORDER_H

#include <mpi.h>
#include <stdbool.h>

#include "grader/protocol.h"

typedef struct Traffic {
    double elements; /**< of 4 bytes: this rank's share of what crosses the wire */
    int64_t calls;   /**< of collectives; a ring of messages is bounded by what it sends */
} Traffic;

/** From now on calls are recorded in `header`, and MPI_COMM_WORLD means `world`. */
void recorder_begin(RankHeader *header, MPI_Comm world);
void recorder_end(void);

/** Is a case being played? */
bool recorder_active(void);

/** Errors of MPI end the case from now on, in every communicator made later too. */
void recorder_catch_errors(void);

/** Everything since recorder_begin(). */
Traffic recorder_traffic(void);

/** Requests that were started and neither waited for nor found complete. */
int64_t recorder_open_requests(void);

#endif
