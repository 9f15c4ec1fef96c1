#include "grader/runner/recorder.h"

#include <string.h>

#include "base/run.h"

typedef struct CommName {
    MPI_Comm comm;
    uint64_t members;
    int64_t collectives;
} CommName;

static struct {
    RankHeader *header;
    MPI_Comm world;
    Traffic traffic;
    int64_t started, ended;
    CommName comms[64];
    int count;
    int depth; /* MPI_Allreduce of ROMIO and the like call MPI themselves: count the outermost only */
} recorder;

void recorder_begin(RankHeader *header, MPI_Comm world)
{
    recorder.header = header;
    recorder.world = world;
    recorder.traffic = (Traffic){0};
    recorder.started = recorder.ended = 0;
    recorder.count = 0;
    recorder.depth = 0;
}

void recorder_end(void)
{
    recorder.header = NULL;
}

Traffic recorder_traffic(void)
{
    return recorder.traffic;
}

int64_t recorder_open_requests(void)
{
    return recorder.started - recorder.ended;
}

static MPI_Comm substituted(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD && recorder.header ? recorder.world : comm;
}

static uint64_t members_of(MPI_Comm comm)
{
    MPI_Group group, all;
    int size, ranks[MAX_RANKS], world[MAX_RANKS];
    uint64_t members = 0;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_size(group, &size);
    for (int i = 0; i < size && i < MAX_RANKS; i++)
        ranks[i] = i;
    PMPI_Group_translate_ranks(group, size < MAX_RANKS ? size : MAX_RANKS, ranks, all, world);
    for (int i = 0; i < size && i < MAX_RANKS; i++)
        members |= (uint64_t)1 << world[i];
    PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    return members;
}

static CommName *named(MPI_Comm comm)
{
    for (int i = 0; i < recorder.count; i++)
        if (recorder.comms[i].comm == comm)
            return &recorder.comms[i];
    if (recorder.count == 64)
        recorder.count = 0;
    CommName *name = &recorder.comms[recorder.count++];
    *name = (CommName){comm, members_of(comm), 0};
    return name;
}

static void forget(MPI_Comm comm)
{
    for (int i = 0; i < recorder.count; i++)
        if (recorder.comms[i].comm == comm)
            recorder.comms[i] = recorder.comms[--recorder.count];
}

static void enter(const char *name, MPI_Comm comm, bool collective, int64_t count, MPI_Datatype type,
                  int peer)
{
    RankHeader *header = recorder.header;
    if (!header || recorder.depth++ > 0)
        return;
    Call call = {.count = count, .peer = peer, .address = callsite()};
    strncpy(call.name, name, sizeof call.name - 1);
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &call.type_size);
    if (comm != MPI_COMM_NULL) {
        CommName *known = named(comm);
        call.members = known->members;
        call.number = collective ? ++known->collectives : 0;
    }
    header->call = call;
    atomic_store(&header->state, IN_MPI);
    atomic_fetch_add(&header->events, 1);
}

static int leave(int result)
{
    if (recorder.header && --recorder.depth == 0) {
        atomic_store(&recorder.header->state, PLAYING);
        atomic_fetch_add(&recorder.header->events, 1);
    }
    return result;
}

/* What this rank is charged with, in numbers of 4 bytes. */
static void charge(double elements, MPI_Datatype type)
{
    int size = 0;
    if (!recorder.header || recorder.depth > 1)
        return;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &size);
    recorder.traffic.elements += elements * size / 4;
    recorder.traffic.calls++;
}

static int size_of(MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

static double all_reduce_share(MPI_Comm comm, double count)
{
    double n = size_of(comm);
    return 2 * (n - 1) * count / n;
}

static double gather_share(MPI_Comm comm, double whole_count)
{
    double n = size_of(comm);
    return (n - 1) * whole_count / n;
}

#define COLLECTIVE(name, count, type, root, share, call)                                                     \
    comm = substituted(comm);                                                                                \
    enter(name, comm, true, count, type, root);                                                              \
    charge(share, type);                                                                                     \
    return leave(call)

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("all_reduce", count, type, -1, all_reduce_share(comm, count),
               PMPI_Allreduce(in, out, count, type, op, comm));
}

int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    COLLECTIVE("reduce", count, type, root, gather_share(comm, count),
               PMPI_Reduce(in, out, count, type, op, root, comm));
}

int MPI_Bcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    COLLECTIVE("broadcast", count, type, root, gather_share(comm, count),
               PMPI_Bcast(x, count, type, root, comm));
}

int MPI_Allgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_gather", out_count, out_type, -1, gather_share(comm, (double)out_count * size_of(comm)),
               PMPI_Allgather(in, count, type, out, out_count, out_type, comm));
}

static double sum_of(const int counts[], MPI_Comm comm)
{
    double sum = 0;
    for (int i = 0, n = size_of(comm); i < n; i++)
        sum += counts[i];
    return sum;
}

int MPI_Allgatherv(const void *in, int count, MPI_Datatype type, void *out, const int counts[],
                   const int displs[], MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_gather", count, out_type, -1, gather_share(comm, sum_of(counts, comm)),
               PMPI_Allgatherv(in, count, type, out, counts, displs, out_type, comm));
}

int MPI_Gather(const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
               int root, MPI_Comm comm)
{
    COLLECTIVE("gather", count, type, root, gather_share(comm, count),
               PMPI_Gather(in, count, type, out, out_count, out_type, root, comm));
}

int MPI_Gatherv(const void *in, int count, MPI_Datatype type, void *out, const int counts[],
                const int displs[], MPI_Datatype out_type, int root, MPI_Comm comm)
{
    COLLECTIVE("gather", count, type, root, gather_share(comm, count),
               PMPI_Gatherv(in, count, type, out, counts, displs, out_type, root, comm));
}

int MPI_Scatter(const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
                int root, MPI_Comm comm)
{
    COLLECTIVE("scatter", out_count, out_type, root, gather_share(comm, out_count),
               PMPI_Scatter(in, count, type, out, out_count, out_type, root, comm));
}

int MPI_Reduce_scatter_block(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
    COLLECTIVE("reduce_scatter", count, type, -1, gather_share(comm, (double)count * size_of(comm)),
               PMPI_Reduce_scatter_block(in, out, count, type, op, comm));
}

int MPI_Reduce_scatter(const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm)
{
    COLLECTIVE("reduce_scatter", counts[0], type, -1, gather_share(comm, sum_of(counts, comm)),
               PMPI_Reduce_scatter(in, out, counts, type, op, comm));
}

int MPI_Alltoall(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                 MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_to_all", count, type, -1, (double)count * (size_of(comm) - 1),
               PMPI_Alltoall(in, count, type, out, out_count, out_type, comm));
}

int MPI_Barrier(MPI_Comm comm)
{
    COLLECTIVE("barrier", 0, MPI_DATATYPE_NULL, -1, 0, PMPI_Barrier(comm));
}

int MPI_Scan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("scan", count, type, -1, gather_share(comm, count), PMPI_Scan(in, out, count, type, op, comm));
}

/* ---- communicators: set up, not traffic
 * ----------------------------------------------------------------------- */

#define SET_UP(name, call)                                                                                   \
    comm = substituted(comm);                                                                                \
    enter(name, comm, true, 0, MPI_DATATYPE_NULL, -1);                                                       \
    return leave(call)

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    SET_UP("split", PMPI_Comm_split(comm, color, key, out));
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out)
{
    SET_UP("dup", PMPI_Comm_dup(comm, out));
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *out)
{
    SET_UP("create", PMPI_Comm_create(comm, group, out));
}

int MPI_Comm_free(MPI_Comm *comm)
{
    enter("free", *comm, true, 0, MPI_DATATYPE_NULL, -1);
    forget(*comm);
    return leave(PMPI_Comm_free(comm));
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    return PMPI_Comm_rank(substituted(comm), rank);
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    return PMPI_Comm_size(substituted(comm), size);
}

int MPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    return PMPI_Comm_group(substituted(comm), group);
}

/* ---- point to point
 * ------------------------------------------------------------------------------------------- */

#define POINT(name, count, type, peer, share, call)                                                          \
    comm = substituted(comm);                                                                                \
    enter(name, comm, false, count, type, peer);                                                             \
    charge(share, type);                                                                                     \
    return leave(call)

int MPI_Send(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    POINT("send", count, type, to, count,
          PMPI_Ssend(x, count, type, to, tag, comm)); /* as large messages would */
}

int MPI_Ssend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    POINT("send", count, type, to, count, PMPI_Ssend(x, count, type, to, tag, comm));
}

int MPI_Recv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    POINT("receive", count, type, from, 0, PMPI_Recv(x, count, type, from, tag, comm, status));
}

int MPI_Sendrecv(const void *x, int count, MPI_Datatype type, int to, int tag, void *y, int y_count,
                 MPI_Datatype y_type, int from, int y_tag, MPI_Comm comm, MPI_Status *status)
{
    POINT("send and receive", count, type, to, count,
          PMPI_Sendrecv(x, count, type, to, tag, y, y_count, y_type, from, y_tag, comm, status));
}

int MPI_Sendrecv_replace(void *x, int count, MPI_Datatype type, int to, int tag, int from, int y_tag,
                         MPI_Comm comm, MPI_Status *status)
{
    POINT("send and receive", count, type, to, count,
          PMPI_Sendrecv_replace(x, count, type, to, tag, from, y_tag, comm, status));
}

int MPI_Isend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    recorder.started++;
    POINT("start of a send", count, type, to, count, PMPI_Isend(x, count, type, to, tag, comm, request));
}

int MPI_Irecv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    recorder.started++;
    POINT("start of a receive", count, type, from, 0, PMPI_Irecv(x, count, type, from, tag, comm, request));
}

/* ---- requests
 * ------------------------------------------------------------------------------------------------- */

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    recorder.started++;
    COLLECTIVE("start of all_reduce", count, type, -1, all_reduce_share(comm, count),
               PMPI_Iallreduce(in, out, count, type, op, comm, request));
}

int MPI_Iallgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
    recorder.started++;
    COLLECTIVE("start of all_gather", out_count, out_type, -1,
               gather_share(comm, (double)out_count * size_of(comm)),
               PMPI_Iallgather(in, count, type, out, out_count, out_type, comm, request));
}

int MPI_Ibcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    recorder.started++;
    COLLECTIVE("start of broadcast", count, type, root, gather_share(comm, count),
               PMPI_Ibcast(x, count, type, root, comm, request));
}

int MPI_Ireduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request *request)
{
    recorder.started++;
    COLLECTIVE("start of reduce", count, type, root, gather_share(comm, count),
               PMPI_Ireduce(in, out, count, type, op, root, comm, request));
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    recorder.ended += *request != MPI_REQUEST_NULL;
    enter("wait", MPI_COMM_NULL, false, 0, MPI_DATATYPE_NULL, -1);
    return leave(PMPI_Wait(request, status));
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    for (int i = 0; i < count; i++)
        recorder.ended += requests[i] != MPI_REQUEST_NULL;
    enter("wait", MPI_COMM_NULL, false, count, MPI_DATATYPE_NULL, -1);
    return leave(PMPI_Waitall(count, requests, statuses));
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    enter("wait", MPI_COMM_NULL, false, count, MPI_DATATYPE_NULL, -1);
    int result = leave(PMPI_Waitany(count, requests, index, status));
    recorder.ended += *index != MPI_UNDEFINED;
    return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    bool open = *request != MPI_REQUEST_NULL;
    int result = PMPI_Test(request, flag, status);
    recorder.ended += open && *flag;
    return result;
}

/* A lab does not end the run of its grader. */
int MPI_Finalize(void)
{
    if (recorder.header)
        misuse("the runtime ends MPI, not a lab", "MPI_Finalize was called");
    return PMPI_Finalize();
}
