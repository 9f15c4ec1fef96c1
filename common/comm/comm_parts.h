/** @file
 * The members of a group, and the functions of its transport. Private to this folder.
 */
#pragma once

#include "base/cxx.h"

BEGIN_C
#include "comm/comm.h"

/** How a collective combines the ranks' numbers. */
typedef enum ReduceOp {
    SUM,     /**< adds them */
    MAXIMUM, /**< takes the largest one */
    APART    /**< does not: an all-to-all is a reduce-scatter without the sum */
} ReduceOp;

/** How a group communicates. The functions of comm.h count, measure and call these. */
typedef struct Transport {
    /** see comm_all_reduce() and comm_all_max() */
    void (*all_reduce)(Group *group, ReduceOp how, const real *x, real *result, int64_t count);
    /** see comm_all_gather() */
    void (*all_gather)(Group *group, const real *x, real *result, int64_t rows, int64_t columns);
    /** see comm_reduce_scatter() */
    void (*reduce_scatter)(Group *group, const real *x, real *result, int64_t rows,
                           int64_t columns);
    /** gives each rank its columns of each rank's x [rows, size·columns]: result [size, rows,
     *  columns], in the order of the ranks, which must not overlap x */
    void (*all_to_all)(Group *group, const real *x, real *result, int64_t rows, int64_t columns);
    /** see comm_reduce_scatter_parts() */
    void (*reduce_scatter_parts)(Group *group, real *x, const int64_t *begin);
    /** see comm_all_gather_parts() */
    void (*all_gather_parts)(Group *group, real *x, const int64_t *begin);
    void (*broadcast)(Group *group, real *x, int64_t count, int root); /**< see comm_broadcast() */
    void (*send)(Group *group, const real *x, int64_t count, int to);  /**< see comm_send() */
    void (*receive)(Group *group, real *x, int64_t count, int from);   /**< see comm_receive() */
    /** see comm_all_reduce_start(); the transport allocates the request */
    CommRequest *(*all_reduce_start)(Group *group, real *x, int64_t count);
    /** see comm_send_start(); the transport allocates the request */
    CommRequest *(*send_start)(Group *group, const real *x, int64_t count, int to);
    void (*wait)(CommRequest *request); /**< see comm_wait() */
    void (*poke)(Group *group);         /**< see comm_poke() */
    void (*leave)(Group *group);        /**< releases what transport_join() acquired */
    bool is_nccl;                       /**< do messages go through NCCL? */
    bool is_dry;                        /**< is nothing sent at all? */
} Transport;

/** A group of ranks with one MPI communicator. Belongs to the group that it was split from. */
struct Group {
    MPI_Comm comm;                     /**< a duplicate, owned by the group */
    int rank, size;                    /**< this rank's number in it, and the number of ranks */
    char name[32];                     /**< "tp", for tables and messages */
    Counter counter[OPERATIONS];       /**< by operation */
    Group *first_child, *next_sibling; /**< the list of groups split from it */
    int under_way;                     /**< requests that comm_wait() has not freed yet */
    const Transport *transport;        /**< how it communicates */
    void *link;                        /**< the transport's own data */
};

/** The first member of each transport's request. */
struct CommRequest {
    Group *group;        /**< the group that communicates */
    Operation operation; /**< ALL_REDUCE or SEND */
};

/** The transport over MPI. Groups whose ranks share a GPU use it too, because NCCL cannot serve
 *  them. */
extern const Transport over_mpi;
/** Over MPI: numbers of a message. A longer array goes in several; tests use smaller pieces. */
extern int64_t mpi_piece;

/** Over MPI: is a started send complete? If so, its wait returns at once. */
bool mpi_is_done(CommRequest *request);

/** Tells the other ranks of a group with shared memory that this rank begins a sum over MPI. */
void shared_sums_by_mpi(Group *group);

/** Lets a group whose ranks are all on one node use shared memory, if comm_share_memory() asked for
 *  it. Returns false if it must use MPI. Collective. */
bool shared_join(Group *group);

/** Selects the group's transport and joins it. Collective. The linker selects the implementation:
 *  common/comm/only_mpi, common/comm/nccl or common/comm/dry. `parent` is the group from which this
 *  one was split with `color` and `key`, or NULL. */
void transport_join(Group *group, Group *parent, int color, int key);

END_C
