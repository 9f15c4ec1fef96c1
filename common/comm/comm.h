/** @file
 * Groups of ranks and their communication, over MPI, shared memory or NCCL. Every rank of a group
 * calls the group's collectives, in the same order.
 *
 * The `comm_` functions work on plain memory, not on tensors; those of balise.h use them. Counts
 * may exceed 2^31 (they are split into smaller ones for MPI). An MPI error ends the run
 * (MPI_ERRORS_ARE_FATAL).
 */
#pragma once

#include "balise_mpi.h"
#include "base/language.h"
#include "base/problem.h"
#include "base/real.h"

/** The hint if ranks do not call the same collectives. */
#define HINT_SAME_COLLECTIVES                                                                      \
    N_("does each rank call the same collectives, in the same order and with the same sizes? "     \
       "make grade names the lab that does not; make trace LAB=n shows where")

/** The operations that a group counts separately. */
typedef enum Operation {
    ALL_REDUCE,     /**< sums, including group_sum() and comm_any(), and maxima */
    ALL_GATHER,     /**< blocks side by side */
    REDUCE_SCATTER, /**< parts of a sum */
    BROADCAST,      /**< one rank's numbers */
    SEND,           /**< a message to one rank */
    RECEIVE,        /**< a message from one rank */
    OPERATIONS,     /**< the number of operations */
} Operation;

/** The cost of one kind of operation on this rank. */
typedef struct Counter {
    int64_t calls; /**< number of calls */
    /** sent by this rank; for an all-reduce of N over n ranks, its share of 2(n-1)N */
    int64_t bytes;
    double seconds; /**< spent in it, waiting included */
} Counter;

/** Makes a group of all ranks of `comm`, which it duplicates. Messages call it `name`, truncated to
 *  31 bytes. */
Group *group_of(MPI_Comm comm, const char *name);

/** Lets groups that are made from now on use shared memory, if all their ranks are on one node. Off
 *  by default, because the grader counts MPI's messages. All ranks pass the same value. Ignored with
 *  NCCL. */
void comm_share_memory(bool wanted);

/** Frees the group and all groups split from it. Collective. */
void group_free(Group *group);

/** Do its messages go through MPI? (Otherwise through NCCL.) */
bool group_is_over_mpi(const Group *group);

/** The cost of all operations since the group was made; zeros if it is NULL. */
Counter group_total(const Group *group);
/** The same of one kind of operation. */
Counter group_total_of(const Group *group, Operation operation);

/** Ends the run, with the line in the student's file, if the group is NULL because only a later lab
 *  makes it. */
void group_must_exist(const Group *group, const char *function);

/** Sums x [count] over the ranks; every rank gets the result. result may be x itself. */
void comm_all_reduce(Group *group, const real *x, real *result, int64_t count);
/** The same with the largest number instead of the sum. Counted as a sum. */
void comm_all_max(Group *group, const real *x, real *result, int64_t count);

/** Combines bits [bytes] by OR over the ranks, in place. Counted as a sum. */
void comm_any(Group *group, uint8_t *bits, int64_t bytes);

/** Joins the blocks of all ranks, [rows, columns] each, side by side: result [rows, size·columns].
 * rows = 1 joins along the first dimension without a copy. result must not overlap x. */
void comm_all_gather(Group *group, const real *x, real *result, int64_t rows, int64_t columns);

/** Returns this rank's columns of the sum: x [rows, size·columns] -> result [rows, columns]. result
 *  must not overlap x. */
void comm_reduce_scatter(Group *group, const real *x, real *result, int64_t rows, int64_t columns);

/** The numbers in 16 bits that travel as one `real`. */
enum { HALVES = sizeof(real) / sizeof(uint16_t) };

/** comm_all_reduce() of numbers in 16 bits. They travel as such: each rank adds the ranks' terms of
 *  its part as reals, in the order of the ranks, and rounds the sum once. `count` is a multiple of
 *  size · HALVES; room [count] for the terms, which no argument overlaps. */
void comm_all_reduce_halves(Group *group, const uint16_t *x, uint16_t *result, int64_t count,
                            uint16_t *room);
/** comm_reduce_scatter() of such numbers. `columns` is a multiple of HALVES; room [rows,
 *  size·columns]. */
void comm_reduce_scatter_halves(Group *group, const uint16_t *x, uint16_t *result, int64_t rows,
                                int64_t columns, uint16_t *room);

/** Sums parts of different sizes, in place. Part k of x holds the numbers begin[k] to begin[k+1]-1;
 *  on rank k, part k becomes the sum of this part over the ranks. The ranks' terms are added in
 *  rank order, so the sums do not depend on how x is split into parts. The rest of x does not
 *  change. begin [size+1], the same on every rank, begins with 0. */
void comm_reduce_scatter_parts(Group *group, real *x, const int64_t *begin);
/** Copies part k of x, see comm_reduce_scatter_parts(), from rank k to every rank, in place. */
void comm_all_gather_parts(Group *group, real *x, const int64_t *begin);

/** Copies x [count] of rank `root` of the group to every rank. */
void comm_broadcast(Group *group, real *x, int64_t count, int root);
/** Sends x [count] to a rank of the group, which must receive the same count. May block until it
 *  does. */
void comm_send(Group *group, const real *x, int64_t count, int to);
/** Receives x [count] from a rank of the group, which must send the same count. */
void comm_receive(Group *group, real *x, int64_t count, int from);

/** A sum or a message in progress; comm_wait() frees it. */
typedef struct CommRequest CommRequest;
/** Starts the sum of x [count] in place, on every rank. Until comm_wait(), x belongs to the
 *  transport. In shared memory, a rank continues a sum inside comm_wait(), comm_poke(),
 *  comm_receive() and collectives in shared memory, but not while it waits in other calls, such as
 *  group_sum(). Collective. */
CommRequest *comm_all_reduce_start(Group *group, real *x, int64_t count);
/** Starts sending x [count] to a rank of the group, which must receive the same count, and returns
 *  at once. Until comm_wait(), x must not change. Never buffered: the send is complete when the
 *  other rank has begun to receive. */
CommRequest *comm_send_start(Group *group, const real *x, int64_t count, int to);
/** Waits for the request and frees it. Over MPI, returns when the sum is in x, or when the other
 *  rank has begun to receive the message. Over NCCL, only kernels called later wait. Call it once
 *  for each start. */
void comm_wait(CommRequest *request);

/** Advances the group's started sums and messages; except over NCCL, they advance only inside
 *  calls. Returns false if there are none. */
bool comm_poke(Group *group);
