/* Messages between two ranks, recorded and charged with what they send. */
#include "base/language.h"
#include "grader/runner/record.h"

/* What a rank sends to itself leaves it for nowhere. */
static void charge_message(MPI_Comm comm, int to, double count, MPI_Datatype type)
{
    if (to == MPI_PROC_NULL || to == rank_in(comm))
        return;
    charge(false, count, type);
    if (count == 0)
        charge_nothing();
}

#define POINT(name, describe, charged, share, type, call)                                          \
    comm = substituted(comm);                                                                      \
    Call *this = call_of(name, comm, MESSAGE);                                                     \
    describe;                                                                                      \
    enter(this);                                                                                   \
    charge_message(comm, charged, share, type);                                                    \
    int result = call;

#define SEND(name, ready, call)                                                                    \
    POINT(name, sends_when(ready, this, comm, to, tag, count, type), to, count, type, call)        \
    return leave(result)

#define START_OF_SEND(name, ready, call)                                                           \
    POINT(name,                                                                                    \
          (begins(this), sends_when(ready, this, comm, to, tag, count, type),                      \
           x = departs(this, x, count, type)),                                                     \
          to, count, type, call)                                                                   \
    return leave(request_started(this, result, comm, *request))

/* A receive costs its sender. Where the message came from is told by the status, if need be by one of our own. */
#define RECEIVE(name, describe, call)                                                              \
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;                            \
    POINT(name, describe, MPI_PROC_NULL, 0, MPI_DATATYPE_NULL, call)                               \
    came_from(this, comm, got);                                                                    \
    return leave(result)

enum { ANY_TIME, READY };

static void sends_when(int ready, Call *call, MPI_Comm comm, int to, int tag, int count,
                       MPI_Datatype type)
{
    sends_message(call, comm, to, tag, count, type);
    if (call)
        call->ready = ready;
}

int MPI_Send(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    SEND("send", ANY_TIME, PMPI_Ssend(x, count, type, to, tag, comm)); /* as large messages would */
}

int MPI_Ssend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    SEND("send", ANY_TIME, PMPI_Ssend(x, count, type, to, tag, comm));
}

int MPI_Isend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    START_OF_SEND("send", ANY_TIME, PMPI_Isend(x, count, type, to, tag, comm, request));
}

int MPI_Issend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    START_OF_SEND("send", ANY_TIME, PMPI_Issend(x, count, type, to, tag, comm, request));
}

int MPI_Rsend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    SEND("ready send", READY, PMPI_Rsend(x, count, type, to, tag, comm));
}

int MPI_Irsend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    START_OF_SEND("ready send", READY, PMPI_Irsend(x, count, type, to, tag, comm, request));
}

int MPI_Recv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    RECEIVE("receive", receives_message(this, comm, from, tag, count, type),
            PMPI_Recv(x, count, type, from_whom(this, comm, from, tag), tag, comm, got));
}

int MPI_Irecv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    POINT("receive",
          (begins(this), receives_message(this, comm, from, tag, count, type),
           x = lands_message(this, x, count, type)),
          MPI_PROC_NULL, 0, type, PMPI_Irecv(x, count, type, from, tag, comm, request))
    return leave(request_started(this, result, comm, *request));
}

static void looks_for(Call *call, MPI_Comm comm, int from, int tag)
{
    receives_message(call, comm, from, tag, 0, MPI_DATATYPE_NULL);
    if (call)
        call->probes = 1;
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    RECEIVE("probe", looks_for(this, comm, from, tag),
            PMPI_Probe(from_whom(this, comm, from, tag), tag, comm, got));
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    return PMPI_Iprobe(from, tag, substituted(comm), flag, status);
}

static void exchanges(Call *call, MPI_Comm comm, int to, int tag, int from, int y_tag, int count,
                      MPI_Datatype type, int y_count, MPI_Datatype y_type)
{
    sends_message(call, comm, to, tag, count, type);
    receives_message(call, comm, from, y_tag, y_count, y_type);
}

int MPI_Sendrecv(const void *x, int count, MPI_Datatype type, int to, int tag, void *y, int y_count,
                 MPI_Datatype y_type, int from, int y_tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;
    POINT(N_("send and receive"),
          exchanges(this, comm, to, tag, from, y_tag, count, type, y_count, y_type), to, count,
          type, PMPI_Sendrecv(x, count, type, to, tag, y, y_count, y_type, from, y_tag, comm, got))
    came_from(this, comm, got);
    return leave(result);
}

int MPI_Sendrecv_replace(void *x, int count, MPI_Datatype type, int to, int tag, int from,
                         int y_tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;
    POINT(N_("send and receive"),
          exchanges(this, comm, to, tag, from, y_tag, count, type, count, type), to, count, type,
          PMPI_Sendrecv_replace(x, count, type, to, tag, from, y_tag, comm, got))
    came_from(this, comm, got);
    return leave(result);
}
