/* What a call says of itself, for the record. */
#include "grader/runner/record.h"

static int each_or(int rank, MPI_Comm comm, int i)
{
    return launch_rank(comm, rank == EACH ? i : rank);
}

static void note(Signature into[MAX_RANKS], MPI_Comm comm, int rank, int64_t count,
                 MPI_Datatype type)
{
    Signature signature = signature_of(count, type);
    for (int i = 0, n = rank == EACH ? size_of(comm) : 1; i < n; i++) {
        int other = each_or(rank, comm, i);
        if (other >= 0)
            into[other] = signature;
    }
}

void sends(Call *call, MPI_Comm comm, int to, int64_t count, MPI_Datatype type)
{
    if (call)
        note(call->sent, comm, to, count, type);
}

void receives(Call *call, MPI_Comm comm, int from, int64_t count, MPI_Datatype type)
{
    if (call)
        note(call->received, comm, from, count, type);
}

void has_root(Call *call, MPI_Comm comm, int root)
{
    if (call)
        call->root = launch_rank(comm, root);
}

void reduces(Call *call, MPI_Comm comm, int64_t count, MPI_Datatype type, MPI_Op op, int root)
{
    if (!call)
        return;
    call->sent[0] = signature_of(count, type);
    call->reduction = reduction_of(op);
    has_root(call, comm, root);
}

void reduces_parts(Call *call, MPI_Comm comm, const int counts[], MPI_Datatype type, MPI_Op op)
{
    if (!call)
        return;
    for (int i = 0, n = size_of(comm); i < n && i < MAX_RANKS; i++)
        call->sent[i] = signature_of(counts[i], type);
    call->reduction = reduction_of(op);
}

static int anybody_or(MPI_Comm comm, int rank)
{
    return rank == MPI_ANY_SOURCE ? ANYBODY : launch_rank(comm, rank);
}

void sends_message(Call *call, MPI_Comm comm, int to, int tag, int64_t count, MPI_Datatype type)
{
    if (!call)
        return;
    call->to = launch_rank(comm, to);
    call->to_tag = tag;
    call->sent[0] = signature_of(count, type);
}

void receives_message(Call *call, MPI_Comm comm, int from, int tag, int64_t count,
                      MPI_Datatype type)
{
    if (!call)
        return;
    call->from = anybody_or(comm, from);
    call->from_tag = tag == MPI_ANY_TAG ? ANY_TAG : tag;
    call->received[0] = signature_of(count, type);
}

void came_from(Call *call, MPI_Comm comm, const MPI_Status *status)
{
    if (!call || (call->from != ANYBODY && call->from_tag != ANY_TAG))
        return;
    if (call->from == ANYBODY)
        call->from = launch_rank(comm, status->MPI_SOURCE);
    call->from_tag = status->MPI_TAG;
}

/* ---- collectives ---------------------------------------------------------------------------------------------------- */

int rank_in(MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

double sum_of(const int counts[], MPI_Comm comm)
{
    double sum = 0;
    for (int i = 0, n = size_of(comm); i < n; i++)
        sum += counts[i];
    return sum;
}

double sum_of_others(const int counts[], MPI_Comm comm)
{
    return sum_of(counts, comm) - counts[rank_in(comm)];
}

void broadcasts(Call *call, MPI_Comm comm, int count, MPI_Datatype type, int root)
{
    if (!call)
        return;
    has_root(call, comm, root);
    if (rank_in(comm) == root)
        sends(call, comm, EACH, count, type);
    else
        receives(call, comm, root, count, type);
}

void gathers_all(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
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

void gathers_all_parts(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
                       const int counts[], MPI_Datatype out_type)
{
    bool in_place = in == MPI_IN_PLACE;
    if (call)
        sends(call, comm, EACH, in_place ? counts[rank_in(comm)] : count,
              in_place ? out_type : type);
    receives_parts(call, comm, counts, out_type);
}

void gathers(Call *call, MPI_Comm comm, int count, MPI_Datatype type, int out_count,
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

void scatters(Call *call, MPI_Comm comm, int count, const int counts[], MPI_Datatype type,
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

void exchanges_all(Call *call, MPI_Comm comm, const void *in, int count, MPI_Datatype type,
                   int out_count, MPI_Datatype out_type)
{
    bool in_place = in == MPI_IN_PLACE;
    sends(call, comm, EACH, in_place ? out_count : count, in_place ? out_type : type);
    receives(call, comm, EACH, out_count, out_type);
}

void exchanges_all_parts(Call *call, MPI_Comm comm, const void *in, const int counts[],
                         MPI_Datatype type, const int out_counts[], MPI_Datatype out_type)
{
    bool in_place = in == MPI_IN_PLACE;
    sends_parts(call, comm, in_place ? out_counts : counts, in_place ? out_type : type);
    receives_parts(call, comm, out_counts, out_type);
}
