/** @file
 * What a group is made of, and what a transport does for it. For this room alone.
 */
#ifndef BALISE_COMM_PARTS_H
#define BALISE_COMM_PARTS_H

#include "base/cxx.h"

BEGIN_C
#include "comm/comm.h"

/** How a group exchanges numbers: the functions behind those of comm.h, which count and measure. */
typedef struct Transport {
    const char *name; /**< "MPI", "NCCL" */
    void (*all_reduce)(Group *group, const real *x, real *result, int64_t count);
    void (*all_gather)(Group *group, const real *x, real *result, int64_t rows, int64_t columns);
    void (*reduce_scatter)(Group *group, const real *x, real *result, int64_t rows, int64_t columns);
    void (*broadcast)(Group *group, real *x, int64_t count, int root);
    void (*send)(Group *group, const real *x, int64_t count, int to);
    void (*receive)(Group *group, real *x, int64_t count, int from);
    CommRequest *(*all_reduce_start)(Group *group, real *x, int64_t count);
    void (*wait)(CommRequest *request); /**< and frees it */
    void (*poke)(Group *group);
    void (*leave)(Group *group); /**< gives back what joining has taken */
} Transport;

struct Group {
    MPI_Comm comm;
    int rank, size;
    char name[32];
    Counter counter[OPERATIONS];
    Group *first_child, *next_sibling;
    const Transport *transport;
    void *link; /**< the transport's own */
};

/** The first member of each transport's own. */
struct CommRequest {
    Group *group;
};

extern const Transport over_mpi;

/** Chooses the group's transport and joins it. Collective; the linker chooses whose this is: that of common/comm/only_mpi, or that of
 *  common/comm/nccl.
 *  @param parent the group that this one was split from with `color` and `key`, or NULL */
void transport_join(Group *group, Group *parent, int color, int key);

END_C

#endif
