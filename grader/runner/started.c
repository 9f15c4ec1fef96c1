/* The collectives of MPI that are started and waited for later, recorded and charged with what they send. */
#include "base/language.h"
#include "grader/runner/record.h"

#define START(name, rule, describe, share, type, call)                                             \
    comm = substituted(comm);                                                                      \
    Call *this = call_of(name, comm, rule);                                                        \
    begins(this);                                                                                  \
    describe;                                                                                      \
    enter(this);                                                                                   \
    charge(true, share, type);                                                                     \
    int result = call;                                                                             \
    return leave(request_started(this, result, comm, *request))

/* This rank sends `n` of `type` from `in`, and `out` takes `m`. */
#define MOVES(n, type, m, out_type)                                                                \
    in = departs(this, in, n, type), out = lands(this, out, m, out_type)

/* Where the last of several parts ends. */
static double end_of(const int counts[], const int displs[], MPI_Comm comm)
{
    double end = 0;
    for (int i = 0, n = size_of(comm); i < n; i++)
        if (counts[i] > 0 && displs[i] + (double)counts[i] > end)
            end = displs[i] + (double)counts[i];
    return end;
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    START("all_reduce", REDUCTION,
          (reduces(this, comm, count, type, op, MPI_PROC_NULL), MOVES(count, type, count, type)),
          all_reduce_share(comm, count), type,
          PMPI_Iallreduce(in, out, count, type, op, comm, request));
}

int MPI_Iallgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
    START("all_gather", EXCHANGE,
          (gathers_all(this, comm, in, count, type, out_count, out_type),
           MOVES(count, type, (double)out_count * size_of(comm), out_type)),
          gather_share(comm, (double)out_count * size_of(comm)), out_type,
          PMPI_Iallgather(in, count, type, out, out_count, out_type, comm, request));
}

int MPI_Ibcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    START("broadcast", EXCHANGE,
          (broadcasts(this, comm, count, type, root),
           x = rank_in(comm) == root ? (void *)departs(this, x, count, type)
                                     : lands(this, x, count, type)),
          gather_share(comm, count), type, PMPI_Ibcast(x, count, type, root, comm, request));
}

int MPI_Ireduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request *request)
{
    START("reduce", REDUCTION,
          (reduces(this, comm, count, type, op, root),
           MOVES(count, type, rank_in(comm) == root ? count : 0, type)),
          gather_share(comm, count), type,
          PMPI_Ireduce(in, out, count, type, op, root, comm, request));
}

int MPI_Ireduce_scatter_block(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request *request)
{
    START("reduce_scatter", REDUCTION,
          (reduces(this, comm, count, type, op, MPI_PROC_NULL),
           MOVES((double)count * size_of(comm), type,
                 (double)count * (in == MPI_IN_PLACE ? size_of(comm) : 1), type)),
          gather_share(comm, (double)count * size_of(comm)), type,
          PMPI_Ireduce_scatter_block(in, out, count, type, op, comm, request));
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    START("barrier", TOGETHER, , 0, MPI_DATATYPE_NULL, PMPI_Ibarrier(comm, request));
}

int MPI_Ireduce_scatter(const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm, MPI_Request *request)
{
    START(N_("reduce_scatter of parts"), REDUCTION,
          (reduces_parts(this, comm, counts, type, op),
           MOVES(sum_of(counts, comm), type,
                 in == MPI_IN_PLACE ? sum_of(counts, comm) : counts[rank_in(comm)], type)),
          gather_share(comm, sum_of(counts, comm)), type,
          PMPI_Ireduce_scatter(in, out, counts, type, op, comm, request));
}

int MPI_Iallgatherv(const void *in, int count, MPI_Datatype type, void *out, const int counts[],
                    const int displs[], MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
    START(N_("all_gather of parts"), EXCHANGE,
          (gathers_all_parts(this, comm, in, count, type, counts, out_type),
           MOVES(count, type, end_of(counts, displs, comm), out_type)),
          gather_share(comm, sum_of(counts, comm)), out_type,
          PMPI_Iallgatherv(in, count, type, out, counts, displs, out_type, comm, request));
}

int MPI_Igather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Request *request)
{
    START("gather", EXCHANGE,
          (gathers(this, comm, count, type, out_count, NULL, out_type, root),
           MOVES(count, type, rank_in(comm) == root ? (double)out_count * size_of(comm) : 0,
                 out_type)),
          gather_share(comm, count), type,
          PMPI_Igather(in, count, type, out, out_count, out_type, root, comm, request));
}

int MPI_Igatherv(const void *in, int count, MPI_Datatype type, void *out, const int counts[],
                 const int displs[], MPI_Datatype out_type, int root, MPI_Comm comm,
                 MPI_Request *request)
{
    START(N_("gather of parts"), EXCHANGE,
          (gathers(this, comm, count, type, 0, counts, out_type, root),
           MOVES(count, type, rank_in(comm) == root ? end_of(counts, displs, comm) : 0, out_type)),
          gather_share(comm, count), type,
          PMPI_Igatherv(in, count, type, out, counts, displs, out_type, root, comm, request));
}

int MPI_Iscatter(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                 MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Request *request)
{
    START("scatter", EXCHANGE,
          (scatters(this, comm, count, NULL, type, out_count, out_type, root),
           MOVES(rank_in(comm) == root ? (double)count * size_of(comm) : 0, type,
                 out == MPI_IN_PLACE ? 0 : out_count, out_type)),
          gather_share(comm, out_count), out_type,
          PMPI_Iscatter(in, count, type, out, out_count, out_type, root, comm, request));
}

int MPI_Iscatterv(const void *in, const int counts[], const int displs[], MPI_Datatype type,
                  void *out, int out_count, MPI_Datatype out_type, int root, MPI_Comm comm,
                  MPI_Request *request)
{
    START(N_("scatter of parts"), EXCHANGE,
          (scatters(this, comm, 0, counts, type, out_count, out_type, root),
           MOVES(rank_in(comm) == root ? end_of(counts, displs, comm) : 0, type,
                 out == MPI_IN_PLACE ? 0 : out_count, out_type)),
          gather_share(comm, out_count), out_type,
          PMPI_Iscatterv(in, counts, displs, type, out, out_count, out_type, root, comm, request));
}

int MPI_Ialltoall(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
    START("all_to_all", EXCHANGE,
          (exchanges_all(this, comm, in, count, type, out_count, out_type),
           MOVES((double)count * size_of(comm), type, (double)out_count * size_of(comm), out_type)),
          (double)out_count * (size_of(comm) - 1), out_type,
          PMPI_Ialltoall(in, count, type, out, out_count, out_type, comm, request));
}

int MPI_Ialltoallv(const void *in, const int counts[], const int displs[], MPI_Datatype type,
                   void *out, const int out_counts[], const int out_displs[], MPI_Datatype out_type,
                   MPI_Comm comm, MPI_Request *request)
{
    START(N_("all_to_all of parts"), EXCHANGE,
          (exchanges_all_parts(this, comm, in, counts, type, out_counts, out_type),
           MOVES(in == MPI_IN_PLACE ? 0 : end_of(counts, displs, comm), type,
                 end_of(out_counts, out_displs, comm), out_type)),
          sum_of_others(in == MPI_IN_PLACE ? out_counts : counts, comm),
          in == MPI_IN_PLACE ? out_type : type,
          PMPI_Ialltoallv(in, counts, displs, type, out, out_counts, out_displs, out_type, comm,
                          request));
}

int MPI_Iscan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              MPI_Request *request)
{
    START("scan", REDUCTION,
          (reduces(this, comm, count, type, op, MPI_PROC_NULL), MOVES(count, type, count, type)),
          gather_share(comm, count), type, PMPI_Iscan(in, out, count, type, op, comm, request));
}

int MPI_Iexscan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request *request)
{
    START(N_("exclusive scan"), REDUCTION,
          (reduces(this, comm, count, type, op, MPI_PROC_NULL), MOVES(count, type, count, type)),
          gather_share(comm, count), type, PMPI_Iexscan(in, out, count, type, op, comm, request));
}
