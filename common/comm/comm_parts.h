/** @file
 * What a group is made of, and what a transport does for it. For this room alone.
 */
#pragma once

#include "base/cxx.h"

BEGIN_C
#include "comm/comm.h"

/** How a group exchanges numbers: the functions behind those of comm.h, which count and measure. */
typedef struct Transport {
    /** see comm_all_reduce() */
    void (*all_reduce)(Group *group, const real *x, real *result, int64_t count);
    /** see comm_all_gather() */
    void (*all_gather)(Group *group, const real *x, real *result, int64_t rows, int64_t columns);
    /** see comm_reduce_scatter() */
    void (*reduce_scatter)(Group *group, const real *x, real *result, int64_t rows,
                           int64_t columns);
    void (*broadcast)(Group *group, real *x, int64_t count, int root); /**< see comm_broadcast() */
    void (*send)(Group *group, const real *x, int64_t count, int to);  /**< see comm_send() */
    void (*receive)(Group *group, real *x, int64_t count, int from);   /**< see comm_receive() */
    /** see comm_all_reduce_start(); the request is the transport's to allocate */
    CommRequest *(*all_reduce_start)(Group *group, real *x, int64_t count);
    void (*wait)(CommRequest *request); /**< and frees it */
    void (*poke)(Group *group);         /**< see comm_poke() */
    void (*leave)(Group *group);        /**< gives back what joining has taken */
} Transport;

/** A group of ranks, one communicator of MPI. Belongs to the group that it was split from. */
struct Group {
    MPI_Comm comm;                     /**< a duplicate, the group's own */
    int rank, size;                    /**< this rank's place in it, and how many there are */
    char name[32];                     /**< "tp", for tables and messages */
    Counter counter[OPERATIONS];       /**< by operation */
    Group *first_child, *next_sibling; /**< the groups that were split from it, as a list */
    const Transport *transport;        /**< how it exchanges numbers */
    void *link;                        /**< the transport's own */
};

/** The first member of each transport's own. */
struct CommRequest {
    Group *group; /**< whose sum it is */
};

/** Through MPI. Also of a group that NCCL cannot serve, since ranks of it share a GPU. */
extern const Transport over_mpi;

/** Chooses the group's transport and joins it. Collective; the linker chooses whose this is: that of common/comm/only_mpi, or that of
 *  common/comm/nccl.
 *  `parent` is the group that this one was split from with `color` and `key`, or NULL. */
void transport_join(Group *group, Group *parent, int color, int key);

END_C
