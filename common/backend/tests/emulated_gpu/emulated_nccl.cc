/* See nccl.h. A call runs the earlier work of its stream and exchanges immediately, but the host
 * sees the result no earlier than on a GPU. */
#include "nccl.h"

#include <mpi.h>
#include <unistd.h>
#include <vector>

struct EmulatedComm {
    MPI_Comm ranks;
};

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess       ? "no error"
           : result == ncclSystemError ? "unhandled system error"
                                       : "internal error";
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = emulated_setting("EMULATED_NCCL_VERSION", NCCL_VERSION_CODE);
    return ncclSuccess;
}

/* EMULATED_NCCL_STUCK=n: the n-th call of the last rank does not return. */
static void may_be_stuck()
{
    static int calls;
    if (emulated_trouble("EMULATED_NCCL_STUCK", ++calls))
        for (;;)
            pause();
}

/* ---- communicators ------------------------------------------------------------------------------------- */

enum { TAG = 17 };

/* Identifies a group to be made: the world rank of its rank 0, and which of that rank's groups it
 * is. */
struct Meeting {
    int world_rank, number;
};

static MPI_Comm world_of_emulation()
{
    static MPI_Comm world = MPI_COMM_NULL;
    if (world == MPI_COMM_NULL) /* all ranks get here, because the first group is the world */
        PMPI_Comm_dup(MPI_COMM_WORLD, &world);
    return world;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static int groups;
    Meeting meeting = {0, groups++};
    PMPI_Comm_rank(MPI_COMM_WORLD, &meeting.world_rank);
    std::memcpy(id->internal, &meeting, sizeof meeting);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    may_be_stuck();
    Meeting meeting;
    std::memcpy(&meeting, id.internal, sizeof meeting);
    const MPI_Comm world = world_of_emulation();
    std::vector<int> members(static_cast<size_t>(ranks));
    int me, mine[2];
    PMPI_Comm_rank(world, &me);
    mine[0] = rank, mine[1] = me;
    if (rank == 0) {
        members[0] = me;
        for (int i = 1; i < ranks; i++) {
            PMPI_Recv(mine, 2, MPI_INT, MPI_ANY_SOURCE, TAG + 2 * meeting.number, world,
                      MPI_STATUS_IGNORE);
            members[static_cast<size_t>(mine[0])] = mine[1];
        }
        for (int i = 1; i < ranks; i++)
            PMPI_Send(members.data(), ranks, MPI_INT, members[static_cast<size_t>(i)],
                      TAG + 2 * meeting.number + 1, world);
    } else {
        PMPI_Send(mine, 2, MPI_INT, meeting.world_rank, TAG + 2 * meeting.number, world);
        PMPI_Recv(members.data(), ranks, MPI_INT, meeting.world_rank, TAG + 2 * meeting.number + 1,
                  world, MPI_STATUS_IGNORE);
    }
    MPI_Group all, some;
    *comm = new EmulatedComm();
    PMPI_Comm_group(world, &all);
    PMPI_Group_incl(all, ranks, members.data(), &some);
    PMPI_Comm_create_group(world, some, TAG, &(*comm)->ranks);
    PMPI_Group_free(&some);
    PMPI_Group_free(&all);
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *part, ncclConfig_t *)
{
    may_be_stuck();
    *part = new EmulatedComm();
    PMPI_Comm_split(comm->ranks, color, key, &(*part)->ranks);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    PMPI_Comm_free(&comm->ranks);
    delete comm;
    return ncclSuccess;
}

/* EMULATED_NCCL_ERROR=n: on the last rank, the n-th query finds a failed link. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *result)
{
    static int looks;
    *result = emulated_trouble("EMULATED_NCCL_ERROR", ++looks) ? ncclSystemError : ncclSuccess;
    return ncclSuccess;
}

/* ---- exchanges ----------------------------------------------------------------------------------------- */

static int size_of(ncclComm_t comm)
{
    int size;
    PMPI_Comm_size(comm->ranks, &size);
    return size;
}

/* Exchanges x [count]; writes the result to y [results] when the stream reaches this work. */
template <typename F>
static ncclResult_t exchange(const void *x, size_t count, void *y, size_t results,
                             cudaStream_t stream, F with)
{
    may_be_stuck();
    emulated_check_pointer(x);
    emulated_check_pointer(y);
    std::vector<float> in(count), out(results);
    emulated_now(stream, [&] {
        if (x)
            std::memcpy(in.data(), x, count * sizeof(float));
    });
    with(in.data(), out.data());
    if (results > 0)
        emulated_later(stream, [=] { std::memcpy(y, out.data(), out.size() * sizeof(float)); });
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *x, void *y, size_t count, ncclDataType_t, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream)
{
    return exchange(x, count, y, count, stream, [=](const float *in, float *out) {
        PMPI_Allreduce(in, out, static_cast<int>(count), MPI_FLOAT,
                       op == ncclMax ? MPI_MAX : MPI_SUM, comm->ranks);
    });
}

ncclResult_t ncclAllGather(const void *x, void *y, size_t count, ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream)
{
    return exchange(x, count, y, count * static_cast<size_t>(size_of(comm)), stream,
                    [=](const float *in, float *out) {
                        PMPI_Allgather(in, static_cast<int>(count), MPI_FLOAT, out,
                                       static_cast<int>(count), MPI_FLOAT, comm->ranks);
                    });
}

ncclResult_t ncclReduceScatter(const void *x, void *y, size_t count, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream)
{
    return exchange(x, count * static_cast<size_t>(size_of(comm)), y, count, stream,
                    [=](const float *in, float *out) {
                        PMPI_Reduce_scatter_block(in, out, static_cast<int>(count), MPI_FLOAT,
                                                  MPI_SUM, comm->ranks);
                    });
}

ncclResult_t ncclBroadcast(const void *x, void *y, size_t count, ncclDataType_t, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return exchange(x, count, y, count, stream, [=](const float *in, float *out) {
        std::memcpy(out, in, count * sizeof(float));
        PMPI_Bcast(out, static_cast<int>(count), MPI_FLOAT, root, comm->ranks);
    });
}

/* The messages of a group of calls do not wait for each other. Alone, a send waits for its
 * receive. */
static struct {
    bool open;
    std::vector<MPI_Request> requests;
    std::vector<std::vector<float>> sent;
} group;

ncclResult_t ncclGroupStart()
{
    group.open = true;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd()
{
    PMPI_Waitall(static_cast<int>(group.requests.size()), group.requests.data(),
                 MPI_STATUSES_IGNORE);
    group = {};
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *x, size_t count, ncclDataType_t, int to, ncclComm_t comm,
                      cudaStream_t stream)
{
    return exchange(x, count, nullptr, 0, stream, [=](const float *in, float *) {
        if (!group.open) {
            PMPI_Ssend(in, static_cast<int>(count), MPI_FLOAT, to, 0, comm->ranks);
            return;
        }
        group.sent.emplace_back(in, in + count);
        group.requests.emplace_back();
        PMPI_Issend(group.sent.back().data(), static_cast<int>(count), MPI_FLOAT, to, 0,
                    comm->ranks, &group.requests.back());
    });
}

ncclResult_t ncclRecv(void *y, size_t count, ncclDataType_t, int from, ncclComm_t comm,
                      cudaStream_t stream)
{
    return exchange(nullptr, 0, y, count, stream, [=](const float *, float *out) {
        PMPI_Recv(out, static_cast<int>(count), MPI_FLOAT, from, 0, comm->ranks, MPI_STATUS_IGNORE);
    });
}
