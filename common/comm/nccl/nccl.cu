/* Groups through NCCL, one rank a GPU. What is waited for goes on the kernels' stream, what is started on a stream beside it; events
 * order the two, and the host waits for neither. Where ranks share a GPU, which NCCL refuses, a group goes through MPI. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <nccl.h>
#include <unistd.h>

#include "backend/cuda/device.cuh"
#include "base/run.h"
#include "comm/parts.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "NCCL is older than 2.18 and has no ncclCommSplit. HINT: a newer one, or TRANSPORT=mpi"
#endif

/* A group's communicator, and what was called last on it, for whoever waits in vain. */
typedef struct Link {
    ncclComm_t comm;
    Group *group;
    const char *last;
    int64_t calls;
    struct Link *next;
} Link;

static Link *links; /* all of this process: an error of one ends the run */

static void check(const Link *link, ncclResult_t result)
{
    if (result != ncclSuccess && result != ncclInProgress)
        misuse("NCCL_DEBUG=INFO says more; TRANSPORT=mpi goes without NCCL",
               "rank %d of group %s: %s #%lld failed in NCCL: %s", link->group->rank, link->group->name,
               link->last, (long long)link->calls, ncclGetErrorString(result));
}

/* ---- while the host waits -------------------------------------------------------------------------------- */

static const double usual_patience = 600; /* seconds; by itself NCCL waits for ever */

static double patience(void)
{
    const char *set = getenv("BALISE_NCCL_TIMEOUT");
    return set && atof(set) > 0 ? atof(set) : usual_patience;
}

static const Link *latest; /* that something was called on */

/* An error that came up on the device, in whatever group; or a wait that takes too long. */
static void look(bool begins)
{
    static double since;
    ncclResult_t result;
    if (begins)
        since = MPI_Wtime();
    for (Link *link = links; link; link = link->next)
        if (ncclCommGetAsyncError(link->comm, &result) == ncclSuccess)
            check(link, result);
    const double waited = MPI_Wtime() - since;
    if (latest && waited > patience())
        misuse("did each rank of the group call it, in this order? BALISE_NCCL_TIMEOUT=seconds waits longer",
               "rank %d has waited %.0f seconds, the last call being %s #%lld of group %s",
               latest->group->rank, waited, latest->last, (long long)latest->calls, latest->group->name);
}

static Link *called(Group *group, const char *what)
{
    Link *link = (Link *)group->link;
    link->last = what;
    link->calls++;
    latest = link;
    return link;
}

/* ---- exchanges ------------------------------------------------------------------------------------------- */

static void nccl_all_reduce(Group *group, const real *x, real *result, int64_t count)
{
    const Link *link = called(group, "all_reduce");
    if (count > 0)
        check(link, ncclAllReduce(x, result, (size_t)count, ncclFloat, ncclSum, link->comm, device_stream()));
}

/* NCCL joins along the first dimension: the blocks of all ranks in turn. Along another one their rows are put side by side then. */
static void nccl_all_gather(Group *group, const real *x, real *result, int64_t rows, int64_t columns)
{
    const Link *link = called(group, "all_gather");
    const int64_t each = rows * columns;
    if (each == 0)
        return;
    real *blocks = rows == 1 ? result : (real *)device_work(each * group->size * (int64_t)sizeof(real));
    check(link, ncclAllGather(x, blocks, (size_t)each, ncclFloat, link->comm, device_stream()));
    for (int k = 0; rows > 1 && k < group->size; k++)
        kernel_copy_rows(rows, columns, blocks + k * each, columns, result + k * columns,
                         columns * group->size);
}

static void nccl_reduce_scatter(Group *group, const real *x, real *result, int64_t rows, int64_t columns)
{
    const Link *link = called(group, "reduce_scatter");
    const int64_t each = rows * columns;
    if (each == 0)
        return;
    real *blocks = rows == 1 ? NULL : (real *)device_work(each * group->size * (int64_t)sizeof(real));
    for (int k = 0; blocks && k < group->size; k++)
        kernel_copy_rows(rows, columns, x + k * columns, columns * group->size, blocks + k * each, columns);
    check(link, ncclReduceScatter(blocks ? blocks : x, result, (size_t)each, ncclFloat, ncclSum, link->comm,
                                  device_stream()));
}

static void nccl_broadcast(Group *group, real *x, int64_t count, int root)
{
    const Link *link = called(group, "broadcast");
    if (count > 0)
        check(link, ncclBroadcast(x, x, (size_t)count, ncclFloat, root, link->comm, device_stream()));
}

static void nccl_send(Group *group, const real *x, int64_t count, int to)
{
    const Link *link = called(group, "send");
    if (count > 0)
        check(link, ncclSend(x, (size_t)count, ncclFloat, to, link->comm, device_stream()));
}

static void nccl_receive(Group *group, real *x, int64_t count, int from)
{
    const Link *link = called(group, "receive");
    if (count > 0)
        check(link, ncclRecv(x, (size_t)count, ncclFloat, from, link->comm, device_stream()));
}

/* ---- what is started --------------------------------------------------------------------------------------- */

typedef struct NcclRequest {
    CommRequest request;
    cudaEvent_t done;
} NcclRequest;

static cudaStream_t side_stream(void)
{
    static cudaStream_t side;
    if (!side)
        device_check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "making a stream");
    return side;
}

/* From here on `later` runs after what is on `earlier` now. */
static void order(cudaStream_t earlier, cudaStream_t later)
{
    cudaEvent_t event;
    device_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
    device_check(cudaEventRecord(event, earlier), "recording an event");
    device_check(cudaStreamWaitEvent(later, event, 0), "waiting for an event");
    device_check(cudaEventDestroy(event), "freeing an event"); /* once it has happened */
}

static CommRequest *nccl_all_reduce_start(Group *group, real *x, int64_t count)
{
    const Link *link = called(group, "all_reduce");
    NcclRequest *mine = (NcclRequest *)calloc(1, sizeof *mine);
    mine->request.group = group;
    order(device_stream(), side_stream());
    if (count > 0)
        check(link, ncclAllReduce(x, x, (size_t)count, ncclFloat, ncclSum, link->comm, side_stream()));
    device_check(cudaEventCreateWithFlags(&mine->done, cudaEventDisableTiming), "making an event");
    device_check(cudaEventRecord(mine->done, side_stream()), "recording an event");
    return &mine->request;
}

/* The kernels' stream waits, not the host. */
static void nccl_wait(CommRequest *request)
{
    NcclRequest *mine = (NcclRequest *)request;
    device_check(cudaStreamWaitEvent(device_stream(), mine->done, 0), "waiting for an event");
    device_check(cudaEventDestroy(mine->done), "freeing an event");
    free(mine);
}

static void nccl_poke(Group *group)
{
    (void)group; /* NCCL moves by itself */
}

/* ---- joining ----------------------------------------------------------------------------------------------- */

static void nccl_leave(Group *group)
{
    Link *link = (Link *)group->link, **at = &links;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    latest = latest == link ? NULL : latest;
    backend_wait();
    ncclCommDestroy(link->comm);
    free(link);
}

static const Transport over_nccl = {"NCCL",         nccl_all_reduce, nccl_all_gather, nccl_reduce_scatter,
                                    nccl_broadcast, nccl_send,       nccl_receive,    nccl_all_reduce_start,
                                    nccl_wait,      nccl_poke,       nccl_leave};

/* A GPU of one machine among all machines. */
typedef struct Place {
    char host[64], gpu[16];
} Place;

/* Has each rank of the group a GPU to itself? */
static bool each_has_a_gpu(const Group *group)
{
    Place mine = {}, *all = (Place *)calloc((size_t)group->size, sizeof *all);
    bool good = true;
    gethostname(mine.host, sizeof mine.host - 1);
    device_identity(mine.gpu);
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, group->comm);
    for (int i = 0; i < group->size; i++)
        for (int k = 0; k < i; k++)
            good = good && memcmp(&all[i], &all[k], sizeof mine) != 0;
    free(all);
    return good;
}

static ncclComm_t begin_communicator(Link *link)
{
    ncclUniqueId id = {};
    ncclComm_t comm;
    if (link->group->rank == 0)
        check(link, ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, link->group->comm);
    check(link, ncclCommInitRank(&comm, link->group->size, id, link->group->rank));
    return comm;
}

/* Of the first group, the world, by its rank 0. */
static void describe(const Group *group, const Group *parent, const char *what)
{
    static bool said;
    if (!said && !parent && group->rank == 0)
        printf("transport %s\n", what);
    said = true;
}

void transport_join(Group *group, Group *parent, int color, int key)
{
    const bool split = parent && parent->transport == &over_nccl;
    /* Not the parts of a group that goes through MPI: ranks of several of them share a GPU. */
    if (!split && (parent || !each_has_a_gpu(group))) {
        group->transport = &over_mpi;
        describe(group, parent, "MPI, by way of the host: ranks share a GPU, and NCCL takes one rank each");
        return;
    }
    Link *link = (Link *)calloc(1, sizeof *link);
    link->group = group;
    link->last = split ? "split" : "joining";
    /* Tensor- and data-parallel groups work on two streams: on the device, too, in the host's order, which is one on all ranks. */
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
    backend_wait(); /* a communicator is not split while it works */
    if (split)
        check(link, ncclCommSplit(((Link *)parent->link)->comm, color, key, &link->comm, NULL));
    else
        link->comm = begin_communicator(link);
    link->next = links;
    links = link;
    group->link = link;
    group->transport = &over_nccl;
    device_look_while_waiting(look);
    int version = 0;
    char text[64];
    ncclGetVersion(&version);
    snprintf(text, sizeof text, "NCCL %d.%d.%d, a rank a GPU", version / 10000, version / 100 % 100,
             version % 100);
    describe(group, parent, text);
}
