/* The collectives of MPI, recorded and charged with what they send. */
#include "grader/runner/record.h"

/* `describe` fills in what the other ranks must agree with; `share` of `type` is what this rank is charged with. */
#define COLLECTIVE(name, rule, describe, share, type, call)                                                  \
    comm = substituted(comm);                                                                                \
    Call *this = call_of(name, comm, rule);                                                                  \
    describe;                                                                                                \
    enter(this);                                                                                             \
    charge(true, share, type);                                                                               \
    return leave(call)

#define START(name, rule, describe, share, type, call)                                                       \
    comm = substituted(comm);                                                                                \
    Call *this = call_of("start of " name, comm, rule);                                                      \
    describe;                                                                                                \
    enter(this);                                                                                             \
    charge(true, share, type);                                                                               \
    int result = call;                                                                                       \
    return leave(request_started(this, result, comm, *request))

static int rank_in(MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static double sum_of(const int counts[], MPI_Comm comm)
{
    double sum = 0;
    for (int i = 0, n = size_of(comm); i < n; i++)
        sum += counts[i];
    return sum;
}

/* ---- what a rank sends to each other one, and expects of it (MPI 3.1, chapter 5); arguments that count on the root alone
 * are looked at there alone */

static void broadcasts(Call *call, MPI_Comm comm, int count, MPI_Datatype type, int root)
{
    if (!call)
        return;
    has_root(call, comm, root);
    if (rank_in(comm) == root)
        sends(call, comm, EACH, count, type);
    else
        receives(call, comm, root, count, type);
}

static void gathers_all(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
                        int out_count, MPI_Datatype out_type)
{
    bool in_place = in == MPI_IN_PLACE;
    sends(call, comm, EACH, in_place ? out_count : count, in_place ? out_type : type);
    receives(call, comm, EACH, out_count, out_type);
}

static void receives_parts(Call *call, MPI_Comm comm, const int counts[], MPI_Datatype type)
{
    for (int i = 0, n = call ? size_of(comm) : 0; i < n; i++)
        receives(call, comm, i, counts[i], type);
}

static void sends_parts(Call *call, MPI_Comm comm, const int counts[], MPI_Datatype type)
{
    for (int i = 0, n = call ? size_of(comm) : 0; i < n; i++)
        sends(call, comm, i, counts[i], type);
}

static void gathers_all_parts(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
                              const int counts[], MPI_Datatype out_type)
{
    bool in_place = in == MPI_IN_PLACE;
    if (call)
        sends(call, comm, EACH, in_place ? counts[rank_in(comm)] : count, in_place ? out_type : type);
    receives_parts(call, comm, counts, out_type);
}

/* counts: of a gather of parts of several sizes; NULL: `out_count` of each. */
static void gathers(Call *call, MPI_Comm comm, int count, MPI_Datatype type, int out_count,
                    const int counts[], MPI_Datatype out_type, int root)
{
    if (!call)
        return;
    has_root(call, comm, root);
    if (rank_in(comm) != root)
        sends(call, comm, root, count, type);
    else if (counts)
        receives_parts(call, comm, counts, out_type);
    else
        receives(call, comm, EACH, out_count, out_type);
}

static void scatters(Call *call, MPI_Comm comm, int count, const int counts[], MPI_Datatype type,
                     int out_count, MPI_Datatype out_type, int root)
{
    if (!call)
        return;
    has_root(call, comm, root);
    if (rank_in(comm) != root)
        receives(call, comm, root, out_count, out_type);
    else if (counts)
        sends_parts(call, comm, counts, type);
    else
        sends(call, comm, EACH, count, type);
}

static void exchanges(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type, int out_count,
                      MPI_Datatype out_type)
{
    bool in_place = in == MPI_IN_PLACE;
    sends(call, comm, EACH, in_place ? out_count : count, in_place ? out_type : type);
    receives(call, comm, EACH, out_count, out_type);
}

static void exchanges_parts(Call *call, MPI_Comm comm, const void *in, const int counts[], MPI_Datatype type,
                            const int out_counts[], MPI_Datatype out_type)
{
    bool in_place = in == MPI_IN_PLACE;
    sends_parts(call, comm, in_place ? out_counts : counts, in_place ? out_type : type);
    receives_parts(call, comm, out_counts, out_type);
}

/* ---- the calls ------------------------------------------------------------------------------------------------------ */

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("all_reduce", REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
               all_reduce_share(comm, count), type, PMPI_Allreduce(in, out, count, type, op, comm));
}

int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    COLLECTIVE("reduce", REDUCTION, reduces(this, comm, count, type, op, root), gather_share(comm, count),
               type, PMPI_Reduce(in, out, count, type, op, root, comm));
}

int MPI_Bcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    COLLECTIVE("broadcast", EXCHANGE, broadcasts(this, comm, count, type, root), gather_share(comm, count),
               type, PMPI_Bcast(x, count, type, root, comm));
}

int MPI_Allgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_gather", EXCHANGE, gathers_all(this, comm, in, count, type, out_count, out_type),
               gather_share(comm, (double)out_count * size_of(comm)), out_type,
               PMPI_Allgather(in, count, type, out, out_count, out_type, comm));
}

int MPI_Allgatherv(const void *in, int count, MPI_Datatype type, void *out, const int counts[],
                   const int displs[], MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_gather of parts", EXCHANGE,
               gathers_all_parts(this, comm, in, count, type, counts, out_type),
               gather_share(comm, sum_of(counts, comm)), out_type,
               PMPI_Allgatherv(in, count, type, out, counts, displs, out_type, comm));
}

int MPI_Gather(const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
               int root, MPI_Comm comm)
{
    COLLECTIVE("gather", EXCHANGE, gathers(this, comm, count, type, out_count, NULL, out_type, root),
               gather_share(comm, count), type,
               PMPI_Gather(in, count, type, out, out_count, out_type, root, comm));
}

int MPI_Gatherv(const void *in, int count, MPI_Datatype type, void *out, const int counts[],
                const int displs[], MPI_Datatype out_type, int root, MPI_Comm comm)
{
    COLLECTIVE("gather of parts", EXCHANGE, gathers(this, comm, count, type, 0, counts, out_type, root),
               gather_share(comm, count), type,
               PMPI_Gatherv(in, count, type, out, counts, displs, out_type, root, comm));
}

int MPI_Scatter(const void *in, int count, MPI_Datatype type, void *out, int out_count, MPI_Datatype out_type,
                int root, MPI_Comm comm)
{
    COLLECTIVE("scatter", EXCHANGE, scatters(this, comm, count, NULL, type, out_count, out_type, root),
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
    COLLECTIVE("reduce_scatter of parts", REDUCTION, reduces_parts(this, comm, counts, type, op),
               gather_share(comm, sum_of(counts, comm)), type,
               PMPI_Reduce_scatter(in, out, counts, type, op, comm));
}

int MPI_Alltoall(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                 MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_to_all", EXCHANGE, exchanges(this, comm, in, count, type, out_count, out_type),
               (double)count * (size_of(comm) - 1), type,
               PMPI_Alltoall(in, count, type, out, out_count, out_type, comm));
}

int MPI_Alltoallv(const void *in, const int counts[], const int displs[], MPI_Datatype type, void *out,
                  const int out_counts[], const int out_displs[], MPI_Datatype out_type, MPI_Comm comm)
{
    COLLECTIVE("all_to_all of parts", EXCHANGE,
               exchanges_parts(this, comm, in, counts, type, out_counts, out_type),
               sum_of(counts, comm) - counts[rank_in(comm)], type,
               PMPI_Alltoallv(in, counts, displs, type, out, out_counts, out_displs, out_type, comm));
}

int MPI_Scatterv(const void *in, const int counts[], const int displs[], MPI_Datatype type, void *out,
                 int out_count, MPI_Datatype out_type, int root, MPI_Comm comm)
{
    COLLECTIVE("scatter of parts", EXCHANGE, scatters(this, comm, 0, counts, type, out_count, out_type, root),
               gather_share(comm, out_count), out_type,
               PMPI_Scatterv(in, counts, displs, type, out, out_count, out_type, root, comm));
}

int MPI_Exscan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("scan", REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
               gather_share(comm, count), type, PMPI_Exscan(in, out, count, type, op, comm));
}

int MPI_Barrier(MPI_Comm comm)
{
    COLLECTIVE("barrier", TOGETHER, , 0, MPI_DATATYPE_NULL, PMPI_Barrier(comm));
}

int MPI_Scan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    COLLECTIVE("scan", REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
               gather_share(comm, count), type, PMPI_Scan(in, out, count, type, op, comm));
}

/* ---- started, to be waited for */

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    START("all_reduce", REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
          all_reduce_share(comm, count), type, PMPI_Iallreduce(in, out, count, type, op, comm, request));
}

int MPI_Iallgather(const void *in, int count, MPI_Datatype type, void *out, int out_count,
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Request *request)
{
    START("all_gather", EXCHANGE, gathers_all(this, comm, in, count, type, out_count, out_type),
          gather_share(comm, (double)out_count * size_of(comm)), out_type,
          PMPI_Iallgather(in, count, type, out, out_count, out_type, comm, request));
}

int MPI_Ibcast(void *x, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    START("broadcast", EXCHANGE, broadcasts(this, comm, count, type, root), gather_share(comm, count), type,
          PMPI_Ibcast(x, count, type, root, comm, request));
}

int MPI_Ireduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request *request)
{
    START("reduce", REDUCTION, reduces(this, comm, count, type, op, root), gather_share(comm, count), type,
          PMPI_Ireduce(in, out, count, type, op, root, comm, request));
}

int MPI_Ireduce_scatter_block(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request *request)
{
    START("reduce_scatter", REDUCTION, reduces(this, comm, count, type, op, MPI_PROC_NULL),
          gather_share(comm, (double)count * size_of(comm)), type,
          PMPI_Ireduce_scatter_block(in, out, count, type, op, comm, request));
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    START("barrier", TOGETHER, , 0, MPI_DATATYPE_NULL, PMPI_Ibarrier(comm, request));
}
