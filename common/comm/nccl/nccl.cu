/* Groups over NCCL, with one rank per GPU. A sum that is started runs on a second stream, all other
 * operations on the kernels' stream. Events order the two; the host waits for neither. NCCL does
 * not support ranks that share a GPU; such a group uses MPI. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "backend/cuda/device.cuh"
#include "base/language.h"
#include "base/run.h"
#include "comm/nccl/link.cuh"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "NCCL is older than 2.18, without ncclCommSplit. HINT: a newer one, or TRANSPORT=mpi"
#endif

/* ---- operations ------------------------------------------------------------------------------------------ */

static void nccl_all_reduce(Group *group, ReduceOp how, const real *x, real *result, int64_t count)
{
    const Link *link = link_called(group, "all_reduce");
    if (count > 0)
        link_ask(link, [&] {
            return ncclAllReduce(x, result, (size_t)count, ncclFloat,
                                 how == MAXIMUM ? ncclMax : ncclSum, link->comm, device_stream());
        });
}

/* NCCL joins along the first dimension: the ranks' blocks in turn. For another dimension, their
 * rows are then interleaved. */
static void nccl_all_gather(Group *group, const real *x, real *result, int64_t rows,
                            int64_t columns)
{
    const Link *link = link_called(group, "all_gather");
    const int64_t each = rows * columns;
    if (each == 0)
        return;
    real *blocks =
        rows == 1 ? result : (real *)device_work(each * group->size * (int64_t)sizeof(real));
    link_ask(link, [&] {
        return ncclAllGather(x, blocks, (size_t)each, ncclFloat, link->comm, device_stream());
    });
    for (int k = 0; rows > 1 && k < group->size; k++)
        kernel_copy_rows(rows, columns, blocks + k * each, columns, result + k * columns,
                         columns * group->size);
}

/* Starts and ends a group of NCCL operations, which run at the same time. */
static void as_one(const Link *link, const std::function<ncclResult_t()> &operations)
{
    link_ask(link, [&] {
        ncclResult_t result = ncclGroupStart();
        if (result == ncclSuccess)
            result = operations();
        const ncclResult_t end = ncclGroupEnd();
        return result == ncclSuccess ? end : result;
    });
}

/* The ranks' columns of x [rows, size·columns], block by block: x itself, or a copy. */
static const real *blocks_of(const Group *group, const real *x, int64_t rows, int64_t columns)
{
    const int64_t each = rows * columns;
    if (rows == 1)
        return x;
    real *blocks = (real *)device_work(each * group->size * (int64_t)sizeof(real));
    for (int k = 0; k < group->size; k++)
        kernel_copy_rows(rows, columns, x + k * columns, columns * group->size, blocks + k * each,
                         columns);
    return blocks;
}

/* How many numbers part k has from its number i on, but at most `most`. */
static int64_t piece_of(const int64_t *begin, int k, int64_t i, int64_t most)
{
    const int64_t left = begin[k + 1] - begin[k] - i;
    return left < 0 ? 0 : left < most ? left : most;
}

/* Each rank receives the other ranks' numbers i to i + most - 1 of its own part: blocks [size,
 * mine]. */
static void exchange_pieces(const Link *link, const real *x, const int64_t *begin, int64_t i,
                            int64_t most, real *blocks)
{
    const Group *group = link->group;
    const int64_t mine = piece_of(begin, group->rank, i, most);
    as_one(link, [&] {
        ncclResult_t result = ncclSuccess;
        for (int k = 0; k < group->size && result == ncclSuccess; k++) {
            const int64_t theirs = piece_of(begin, k, i, most);
            if (k != group->rank && theirs > 0)
                result = ncclSend(x + begin[k] + i, (size_t)theirs, ncclFloat, k, link->comm,
                                  device_stream());
            if (k != group->rank && mine > 0 && result == ncclSuccess)
                result = ncclRecv(blocks + k * mine, (size_t)mine, ncclFloat, k, link->comm,
                                  device_stream());
        }
        return result;
    });
}

static void nccl_all_to_all(Group *group, const real *x, real *result, int64_t rows,
                            int64_t columns)
{
    const Link *link = link_called(group, "all_to_all");
    const int64_t each = rows * columns;
    if (each == 0)
        return;
    const real *blocks = blocks_of(group, x, rows, columns);
    int64_t *begin = (int64_t *)calloc((size_t)group->size + 1, sizeof *begin);
    for (int k = 0; k < group->size; k++)
        begin[k + 1] = begin[k] + each;
    kernel_vector_copy(each, blocks + begin[group->rank], result + begin[group->rank]);
    exchange_pieces(link, blocks, begin, 0, each, result);
    free(begin);
}

static void nccl_reduce_scatter(Group *group, const real *x, real *result, int64_t rows,
                                int64_t columns)
{
    const Link *link = link_called(group, "reduce_scatter");
    const int64_t each = rows * columns;
    if (each == 0)
        return;
    const real *blocks = blocks_of(group, x, rows, columns);
    link_ask(link, [&] {
        return ncclReduceScatter(blocks, result, (size_t)each, ncclFloat, ncclSum, link->comm,
                                 device_stream());
    });
}

/* Does not use ncclReduce, which may add in a different order for each part. An exchange moves at
 * most `piece` numbers of each part. */
static void nccl_reduce_scatter_parts(Group *group, real *x, const int64_t *begin)
{
    const Link *link = link_called(group, "reduce_scatter");
    const int64_t piece = 1 << 22;
    const int rank = group->rank;
    int64_t most = 0;
    for (int k = 0; k < group->size; k++)
        most = begin[k + 1] - begin[k] > most ? begin[k + 1] - begin[k] : most;
    const int64_t width = most < piece ? most : piece;
    for (int64_t i = 0; i < most; i += piece) {
        const int64_t mine = piece_of(begin, rank, i, piece);
        real *own = x + begin[rank] + i,
             *blocks = (real *)device_work(group->size * width * (int64_t)sizeof(real));
        exchange_pieces(link, x, begin, i, piece, blocks);
        if (mine == 0)
            continue;
        if (rank == 0)
            kernel_vector_copy(mine, own, blocks);
        for (int k = 1; k < group->size; k++)
            kernel_vector_accumulate(mine, k == rank ? own : blocks + k * mine, blocks);
        kernel_vector_copy(mine, blocks, own);
    }
}

static void nccl_all_gather_parts(Group *group, real *x, const int64_t *begin)
{
    const Link *link = link_called(group, "all_gather");
    as_one(link, [&] {
        ncclResult_t result = ncclSuccess;
        for (int k = 0; k < group->size && result == ncclSuccess; k++)
            if (begin[k + 1] > begin[k])
                result =
                    ncclBroadcast(x + begin[k], x + begin[k], (size_t)(begin[k + 1] - begin[k]),
                                  ncclFloat, k, link->comm, device_stream());
        return result;
    });
}

static void nccl_broadcast(Group *group, real *x, int64_t count, int root)
{
    const Link *link = link_called(group, "broadcast");
    if (count > 0)
        link_ask(link, [&] {
            return ncclBroadcast(x, x, (size_t)count, ncclFloat, root, link->comm, device_stream());
        });
}

/* A completed request and its event are kept for the next operation that is started. */
typedef struct NcclRequest {
    CommRequest request;
    cudaEvent_t done;
    struct NcclRequest *next;
    const real *x; /* of a started send: the numbers, their count and the receiver */
    int64_t count;
    int to;
} NcclRequest;

/* Runs the queued send, if there is one, and `message`, if it is not null, as one group of
 * operations. NCCL runs a communicator's operations one after the other. So two ranks that
 * send to each other would both wait, unless each send is in a group with a receive. */
static void exchange(Link *link, const std::function<ncclResult_t()> &message)
{
    const NcclRequest *send = link->queued;
    if (!message && !send)
        return;
    link_ask(link, [&] {
        ncclResult_t result = ncclGroupStart();
        if (result == ncclSuccess && send && send->count > 0)
            result = ncclSend(send->x, (size_t)send->count, ncclFloat, send->to, link->comm,
                              device_stream());
        if (result == ncclSuccess && message)
            result = message();
        const ncclResult_t end = ncclGroupEnd();
        return result == ncclSuccess ? end : result;
    });
    link->queued = NULL;
}

static void nccl_send(Group *group, const real *x, int64_t count, int to)
{
    Link *link = link_called(group, "send");
    if (count > 0)
        exchange(link, [&] {
            return ncclSend(x, (size_t)count, ncclFloat, to, link->comm, device_stream());
        });
}

static void nccl_receive(Group *group, real *x, int64_t count, int from)
{
    Link *link = link_called(group, "receive");
    if (count > 0)
        exchange(link, [&] {
            return ncclRecv(x, (size_t)count, ncclFloat, from, link->comm, device_stream());
        });
}

/* ---- started operations ---------------------------------------------------------------------------------- */

static NcclRequest *free_requests;

static cudaEvent_t new_event(void)
{
    cudaEvent_t event;
    device_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
    return event;
}

static NcclRequest *take_request(void)
{
    NcclRequest *request = free_requests;
    if (request) {
        free_requests = request->next;
        return request;
    }
    request = (NcclRequest *)calloc(1, sizeof *request);
    request->done = new_event();
    return request;
}

static cudaStream_t side_stream(void)
{
    static cudaStream_t side;
    if (!side)
        device_check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "making a stream");
    return side;
}

/* Makes work that is added to `later` from now on run after the current work on `earlier`. Each
 * call can reuse the event. */
static void order(cudaStream_t earlier, cudaStream_t later)
{
    static cudaEvent_t event;
    if (!event)
        event = new_event();
    device_check(cudaEventRecord(event, earlier), "recording an event");
    device_check(cudaStreamWaitEvent(later, event, 0), "waiting for an event");
}

static CommRequest *nccl_all_reduce_start(Group *group, real *x, int64_t count)
{
    const Link *link = link_called(group, "all_reduce");
    NcclRequest *mine = take_request();
    mine->request.group = group;
    order(device_stream(), side_stream());
    if (count > 0)
        link_ask(link, [&] {
            return ncclAllReduce(x, x, (size_t)count, ncclFloat, ncclSum, link->comm,
                                 side_stream());
        });
    device_check(cudaEventRecord(mine->done, side_stream()), "recording an event");
    return &mine->request;
}

/* Runs the send that was queued before, because its receiver may be waiting for it. Queues the new
 * send, to run in one group with the next message. */
static CommRequest *nccl_send_start(Group *group, const real *x, int64_t count, int to)
{
    Link *link = link_called(group, "send");
    NcclRequest *mine = take_request();
    exchange(link, nullptr);
    mine->request.group = group;
    mine->x = x;
    mine->count = count;
    mine->to = to;
    mine->next = NULL;
    link->queued = mine;
    return &mine->request;
}

/* Makes the kernels' stream wait, not the host. A send runs on that stream, so it needs no
 * event. */
static void nccl_wait(CommRequest *request)
{
    NcclRequest *mine = (NcclRequest *)request;
    if (request->operation == SEND)
        exchange((Link *)request->group->link, nullptr);
    else
        device_check(cudaStreamWaitEvent(device_stream(), mine->done, 0), "waiting for an event");
    mine->next = free_requests;
    free_requests = mine;
}

static void nccl_poke(Group *group)
{
    /* NCCL progresses by itself */
}

/* ---- joining ----------------------------------------------------------------------------------------------- */

static void nccl_leave(Group *group)
{
    Link *link = (Link *)group->link;
    link_remove(link);
    backend_wait();
    link->last = "leaving";
    link_ask(link, [&] { return ncclCommDestroy(link->comm); });
    free(link);
}

static const Transport over_nccl = {nccl_all_reduce,
                                    nccl_all_gather,
                                    nccl_reduce_scatter,
                                    nccl_all_to_all,
                                    nccl_reduce_scatter_parts,
                                    nccl_all_gather_parts,
                                    nccl_broadcast,
                                    nccl_send,
                                    nccl_receive,
                                    nccl_all_reduce_start,
                                    nccl_send_start,
                                    nccl_wait,
                                    nccl_poke,
                                    nccl_leave,
                                    true,
                                    false};

/* The loaded library may differ from the header's version. All releases of one minor version have
 * the same functions, so an older one will do. */
static int check_version(void)
{
    int version = 0;
    ncclGetVersion(&version);
    if (version / 100 < NCCL_VERSION_CODE / 100)
        misuse("LD_LIBRARY_PATH=folder of a newer libnccl.so.2, or TRANSPORT=mpi, which does not "
               "need NCCL",
               "the loaded NCCL is %d.%d.%d, older than the %d.%d.%d that the kit was built with%s",
               version / 10000, version / 100 % 100, version % 100, NCCL_VERSION_CODE / 10000,
               NCCL_VERSION_CODE / 100 % 100, NCCL_VERSION_CODE % 100,
               version < NCCL_VERSION(2, 18, 0) ? _(", without ncclCommSplit") : "");
    return version;
}

/* A rank's GPU: an identifier that is unique over all machines, and whether kernels can run. */
typedef struct Place {
    char gpu[16];
    bool ready;
} Place;

/* The number of GPUs that the group's ranks have together; 0 if a rank has none, which the program
 * reports later. */
static int gpus_of(const Group *group)
{
    Problem problem;
    Place mine = {}, *all = (Place *)calloc((size_t)group->size, sizeof *all);
    int gpus = 0;
    bool every = true;
    mine.ready = backend_ready(&problem);
    if (mine.ready)
        device_identity(mine.gpu);
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, group->comm);
    for (int i = 0, k; i < group->size; i++) {
        for (k = 0; k < i && memcmp(&all[i], &all[k], sizeof mine) != 0; k++)
            ;
        gpus += k == i;
        every = every && all[i].ready;
    }
    free(all);
    return every ? gpus : 0;
}

static ncclComm_t begin_communicator(Link *link)
{
    ncclUniqueId id = {};
    ncclComm_t comm;
    if (link->group->rank == 0)
        link_ask(link, [&] { return ncclGetUniqueId(&id); });
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, link->group->comm);
    link_ask(link,
             [&] { return ncclCommInitRank(&comm, link->group->size, id, link->group->rank); });
    return comm;
}

/* Prints the transport of the first group, the world, on its rank 0. */
static void describe(const Group *group, const Group *parent, const char *what)
{
    static bool said;
    if (!said && !parent && group->rank == 0)
        printf(_("transport %s\n"), what);
    said = true;
}

void transport_join(Group *group, Group *parent, int color, int key)
{
    const bool split = parent && parent->transport == &over_nccl;
    char text[128];
    /* The parts of a group over MPI use MPI too: ranks of different parts may share a GPU. */
    const int gpus = split ? group->size : parent ? 0 : gpus_of(group);
    if (gpus < group->size) {
        group->transport = &over_mpi;
        snprintf(text, sizeof text,
                 ngettext("MPI via the host: %d ranks share %d GPU, and NCCL needs a GPU per rank",
                          "MPI via the host: %d ranks share %d GPUs, and NCCL needs a GPU per rank",
                          (unsigned long)gpus),
                 group->size, gpus);
        if (gpus > 0)
            describe(group, parent, text);
        return;
    }
    Link *link = (Link *)calloc(1, sizeof *link);
    link->group = group;
    link->last = split ? "split" : "joining";
    const int version = check_version();
    /* Operations of tensor- and data-parallel groups are on two streams. With this setting, the
     * device runs them in the order of the host's calls, which is the same on all ranks (from NCCL
     * 2.26 on; in older versions, only the events order them). */
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
    backend_wait(); /* a communicator must be idle when it is split */
    if (split)
        link_ask(link, [&] {
            return ncclCommSplit(((Link *)parent->link)->comm, color, key, &link->comm, NULL);
        });
    else
        link->comm = begin_communicator(link);
    link_add(link);
    group->link = link;
    group->transport = &over_nccl;
    snprintf(text, sizeof text, _("NCCL %d.%d.%d, a GPU per rank"), version / 10000,
             version / 100 % 100, version % 100);
    describe(group, parent, text);
}
