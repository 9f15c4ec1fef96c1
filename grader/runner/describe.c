/* What a call says of itself, for the record. */
#include "grader/runner/record.h"

static int each_or(int rank, MPI_Comm comm, int i)
{
    return launch_rank(comm, rank == EACH ? i : rank);
}

static void note(Signature into[MAX_RANKS], MPI_Comm comm, int rank, int64_t count, MPI_Datatype type)
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

void receives_message(Call *call, MPI_Comm comm, int from, int tag, int64_t count, MPI_Datatype type)
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
