/* The collectives of MPI, recorded and charged with what they send. */
#include "grader/runner/record.h"

#define COLLECTIVE(name, count, type, root, share, call)                                                     \
    comm = substituted(comm);                                                                                \
    enter(name, comm, true, count, type, root);                                                              \
    charge(true, share, type);                                                                               \
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

static int rank_in(MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
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

int MPI_Alltoallv(const void *in, const int counts[], const int displs[], MPI_Datatype type, void *out,
                  const int out_counts[], const int out_displs[], MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_to_all", counts[0], type, -1, sum_of(counts, comm) - counts[rank_in(comm)],
               PMPI_Alltoallv(in, counts, displs, type, out, out_counts, out_displs, out_type, comm));
}

int MPI_Scatterv(const void *in, const int counts[], const int displs[], MPI_Datatype type, void *out,
                 int out_count, MPI_Datatype out_type, int root, MPI_Comm comm)
{
    COLLECTIVE("scatter", out_count, out_type, root, gather_share(comm, out_count),
               PMPI_Scatterv(in, counts, displs, type, out, out_count, out_type, root, comm));
}

int MPI_Exscan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("scan", count, type, -1, gather_share(comm, count),
               PMPI_Exscan(in, out, count, type, op, comm));
}

int MPI_Barrier(MPI_Comm comm)
{
    COLLECTIVE("barrier", 0, MPI_DATATYPE_NULL, -1, 0, PMPI_Barrier(comm));
}

int MPI_Scan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("scan", count, type, -1, gather_share(comm, count), PMPI_Scan(in, out, count, type, op, comm));
}

/* ---- started, to be waited for */

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    request_started();
    COLLECTIVE("start of all_reduce", count, type, -1, all_reduce_share(comm, count),
               PMPI_Iallreduce(in, out, count, type, op, comm, request));
}

int MPI_Iallgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
    request_started();
    COLLECTIVE("start of all_gather", out_count, out_type, -1,
               gather_share(comm, (double)out_count * size_of(comm)),
               PMPI_Iallgather(in, count, type, out, out_count, out_type, comm, request));
}

int MPI_Ibcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    request_started();
    COLLECTIVE("start of broadcast", count, type, root, gather_share(comm, count),
               PMPI_Ibcast(x, count, type, root, comm, request));
}

int MPI_Ireduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request *request)
{
    request_started();
    COLLECTIVE("start of reduce", count, type, root, gather_share(comm, count),
               PMPI_Ireduce(in, out, count, type, op, root, comm, request));
}

int MPI_Ireduce_scatter_block(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request *request)
{
    request_started();
    COLLECTIVE("start of reduce_scatter", count, type, -1, gather_share(comm, (double)count * size_of(comm)),
               PMPI_Ireduce_scatter_block(in, out, count, type, op, comm, request));
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    request_started();
    COLLECTIVE("start of barrier", 0, MPI_DATATYPE_NULL, -1, 0, PMPI_Ibarrier(comm, request));
}
