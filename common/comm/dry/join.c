/* The transport of a dry run: nothing is sent. */
#include "comm/dry/dry.h"

#include <stdlib.h>

#include "comm/comm_parts.h"

static void reduce(Group *group, ReduceOp how, const real *x, real *result, int64_t count)
{
}

static void exchange_blocks(Group *group, const real *x, real *result, int64_t rows,
                            int64_t columns)
{
}

static void exchange_parts(Group *group, real *x, const int64_t *begin)
{
}

static void send_nothing(Group *group, const real *x, int64_t count, int to)
{
}

static void receive_nothing(Group *group, real *x, int64_t count, int from)
{
}

static CommRequest *all_reduce_start(Group *group, real *x, int64_t count)
{
    return calloc(1, sizeof(CommRequest));
}

static CommRequest *send_start(Group *group, const real *x, int64_t count, int to)
{
    return calloc(1, sizeof(CommRequest));
}

static void end_request(CommRequest *request)
{
    free(request);
}

static void poke(Group *group)
{
}

static const Transport dry_transport = {.is_dry = true,
                                        .all_reduce = reduce,
                                        .all_gather = exchange_blocks,
                                        .reduce_scatter = exchange_blocks,
                                        .all_to_all = exchange_blocks,
                                        .reduce_scatter_parts = exchange_parts,
                                        .all_gather_parts = exchange_parts,
                                        .broadcast = receive_nothing,
                                        .send = send_nothing,
                                        .receive = receive_nothing,
                                        .all_reduce_start = all_reduce_start,
                                        .send_start = send_start,
                                        .wait = end_request,
                                        .poke = poke};

void transport_join(Group *group, Group *parent, int color, int key)
{
    group->transport = &dry_transport;
}

Group *simulated_group(const char *name, int rank, int size)
{
    Group *group = group_of(MPI_COMM_SELF, name);
    group->rank = rank;
    group->size = size;
    return group;
}
