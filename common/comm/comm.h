/** @file
 * Groups of ranks and what they exchange, over MPI. Every rank of a group calls a collective, in the same
 * order.
 *
 * Functions with `comm_` work on plain memory and know no tensor; those of balise.h stand on them. Counts
 * may exceed 2^31 (the pieces that MPI gets do not). An error of MPI ends the run (MPI_ERRORS_ARE_FATAL).
 */
#pragma once

#include "balise_mpi.h"
#include "base/problem.h"
#include "base/real.h"

/** What a group counts apart. */
typedef enum Operation {
    ALL_REDUCE,     /**< sums, group_sum() and comm_any() too */
    ALL_GATHER,     /**< blocks side by side */
    REDUCE_SCATTER, /**< parts of a sum */
    BROADCAST,      /**< one rank's numbers */
    SEND,           /**< a message to one rank */
    RECEIVE,        /**< a message from one rank */
    OPERATIONS,     /**< how many there are */
} Operation;

/** What operations of a kind have cost this rank. */
typedef struct Counter {
    int64_t calls;  /**< how often it was called */
    int64_t bytes;  /**< sent by this rank: of an all-reduce of N its share of 2(n-1)N, ... */
    double seconds; /**< spent waiting for and doing it */
} Counter;

/** A group of all ranks of `comm`, which is duplicated, called `name` in messages, of which 31 bytes are kept. */
Group *group_of(MPI_Comm comm, const char *name);

/** Frees the group and those that were split from it. Collective. */
void group_free(Group *group);

/** What all operations have cost since the group was made: nothing where it is NULL. */
Counter group_total(const Group *group);

/** Ends the run, with the line in the student's file, where a group of a later balise is used. */
void group_must_exist(const Group *group, const char *function);

/** The sum over the ranks of x [count], on every rank. result may be x itself. */
void comm_all_reduce(Group *group, const real *x, real *result, int64_t count);

/** Bits [bytes]: on every rank those that are set on any. Counted as a sum. */
void comm_any(Group *group, uint8_t *bits, int64_t bytes);

/** The blocks of all ranks, [rows, columns] each, side by side: result [rows, size·columns]. rows = 1 joins
 * along the first dimension without a copy. result must not overlap x. */
void comm_all_gather(Group *group, const real *x, real *result, int64_t rows, int64_t columns);

/** This rank's columns of the sum: x [rows, size·columns] -> result [rows, columns], which lies apart. */
void comm_reduce_scatter(Group *group, const real *x, real *result, int64_t rows, int64_t columns);

/** x [count] of rank `root` of the group, on every rank. */
void comm_broadcast(Group *group, real *x, int64_t count, int root);
/** Sends x [count] to a rank of the group, which receives it with the same count. Both may wait for each other. */
void comm_send(Group *group, const real *x, int64_t count, int to);
/** Receives x [count] from a rank of the group, which sends it with the same count. */
void comm_receive(Group *group, real *x, int64_t count, int from);

/** Starts a sum in place; comm_wait() ends it and frees the request. */
typedef struct CommRequest CommRequest;
/** Starts the sum of x [count] in place, on every rank. x is MPI's until comm_wait(). Collective. */
CommRequest *comm_all_reduce_start(Group *group, real *x, int64_t count);
/** Returns when the sum is in x, and frees the request. Once for each start. */
void comm_wait(CommRequest *request);

/** Lets MPI move what was started: it does so inside its calls only. */
void comm_poke(Group *group);
