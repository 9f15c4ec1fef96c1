/* The collectives of MPI, recorded and charged with what they send. */
#include "base/language.h"
#include "grader/runner/record.h"

/* `describe` fills in what the other ranks must agree with; `share` of `type` is what this rank is charged with. */
#define COLLECTIVE(name, rule, describe, share, type, call)                                        \
    comm = substituted(comm);                                                                      \
    Call *this = call_of(name, comm, rule);                                                        \
    describe;                                                                                      \
    enter(this);                                                                                   \
    charge(true, share, type);                                                                     \
    return leave(call)

/* One with a root may come back on some ranks before others have called it, or may wait for them (MPI 3.1, 5.1): here it waits,
 * so that who counts on the one or the other is found. */
#define ROOTED(name, rule, describe, share, type, call)                                            \
    COLLECTIVE(name, rule, describe, share, type, (PMPI_Barrier(comm), call))

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("all_reduce", REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
               all_reduce_share(comm, count), type, PMPI_Allreduce(in, out, count, type, op, comm));
}

int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    ROOTED("reduce", REDUCTION, reduces(this, comm, count, type, op, root),
           gather_share(comm, count), type, PMPI_Reduce(in, out, count, type, op, root, comm));
}

int MPI_Bcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    ROOTED("broadcast", EXCHANGE, broadcasts(this, comm, count, type, root),
           gather_share(comm, count), type, PMPI_Bcast(x, count, type, root, comm));
}

int MPI_Allgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_gather", EXCHANGE,
               gathers_all(this, comm, in, count, type, out_count, out_type),
               gather_share(comm, (double)out_count * size_of(comm)), out_type,
               PMPI_Allgather(in, count, type, out, out_count, out_type, comm));
}

int MPI_Allgatherv(const void *in, int count, MPI_Datatype type, void *out, const int counts[],
                   const int displs[], MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE(N_("all_gather of parts"), EXCHANGE,
               gathers_all_parts(this, comm, in, count, type, counts, out_type),
               gather_share(comm, sum_of(counts, comm)), out_type,
               PMPI_Allgatherv(in, count, type, out, counts, displs, out_type, comm));
}

int MPI_Gather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
               MPI_Datatype out_type, int root, MPI_Comm comm)
{
    ROOTED("gather", EXCHANGE, gathers(this, comm, count, type, out_count, NULL, out_type, root),
           gather_share(comm, count), type,
           PMPI_Gather(in, count, type, out, out_count, out_type, root, comm));
}

int MPI_Gatherv(const void *in, int count, MPI_Datatype type, void *out, const int counts[],
                const int displs[], MPI_Datatype out_type, int root, MPI_Comm comm)
{
    ROOTED(N_("gather of parts"), EXCHANGE,
           gathers(this, comm, count, type, 0, counts, out_type, root), gather_share(comm, count),
           type, PMPI_Gatherv(in, count, type, out, counts, displs, out_type, root, comm));
}

int MPI_Scatter(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                MPI_Datatype out_type, int root, MPI_Comm comm)
{
    ROOTED("scatter", EXCHANGE, scatters(this, comm, count, NULL, type, out_count, out_type, root),
           gather_share(comm, out_count), out_type,
           PMPI_Scatter(in, count, type, out, out_count, out_type, root, comm));
}

int MPI_Reduce_scatter_block(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
    COLLECTIVE("reduce_scatter", REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
               gather_share(comm, (double)count * size_of(comm)), type,
               PMPI_Reduce_scatter_block(in, out, count, type, op, comm));
}

int MPI_Reduce_scatter(const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm)
{
    COLLECTIVE(N_("reduce_scatter of parts"), REDUCTION,
               reduces_parts(this, comm, counts, type, op),
               gather_share(comm, sum_of(counts, comm)), type,
               PMPI_Reduce_scatter(in, out, counts, type, op, comm));
}

int MPI_Alltoall(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                 MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_to_all", EXCHANGE,
               exchanges_all(this, comm, in, count, type, out_count, out_type),
               (double)out_count * (size_of(comm) - 1), out_type,
               PMPI_Alltoall(in, count, type, out, out_count, out_type, comm));
}

int MPI_Alltoallv(const void *in, const int counts[], const int displs[], MPI_Datatype type,
                  void *out, const int out_counts[], const int out_displs[], MPI_Datatype out_type,
                  MPI_Comm comm)
{
    COLLECTIVE(
        N_("all_to_all of parts"), EXCHANGE,
        exchanges_all_parts(this, comm, in, counts, type, out_counts, out_type),
        sum_of_others(in == MPI_IN_PLACE ? out_counts : counts, comm),
        in == MPI_IN_PLACE ? out_type : type,
        PMPI_Alltoallv(in, counts, displs, type, out, out_counts, out_displs, out_type, comm));
}

int MPI_Scatterv(const void *in, const int counts[], const int displs[], MPI_Datatype type,
                 void *out, int out_count, MPI_Datatype out_type, int root, MPI_Comm comm)
{
    ROOTED(N_("scatter of parts"), EXCHANGE,
           scatters(this, comm, 0, counts, type, out_count, out_type, root),
           gather_share(comm, out_count), out_type,
           PMPI_Scatterv(in, counts, displs, type, out, out_count, out_type, root, comm));
}

int MPI_Exscan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    ROOTED(N_("exclusive scan"), REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
           gather_share(comm, count), type, PMPI_Exscan(in, out, count, type, op, comm));
}

int MPI_Barrier(MPI_Comm comm)
{
    COLLECTIVE("barrier", TOGETHER, , 0, MPI_DATATYPE_NULL, PMPI_Barrier(comm));
}

int MPI_Scan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    ROOTED("scan", REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
           gather_share(comm, count), type, PMPI_Scan(in, out, count, type, op, comm));
}
