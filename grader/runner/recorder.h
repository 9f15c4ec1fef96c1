/** @file
 * The flight recorder: every call of MPI that the student's code makes, through the kit's words or directly,
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

/** Is a case being played? */
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
