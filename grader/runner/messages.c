/* Messages between two ranks, recorded and charged with what they send. */
#include "base/run.h"
#include "grader/runner/record.h"

/* What a rank sends to itself leaves it for nowhere. */
static void charge_message(MPI_Comm comm, int to, double count, MPI_Datatype type)
{
    if (to == MPI_PROC_NULL || to == rank_in(comm))
        return;
    charge(false, count, type);
    if (bytes_of(to, count, type) == 0)
        charge_nothing();
}

#define POINT(name, describe, charged, share, type, call)                                                    \
    comm = substituted(comm);                                                                                \
    Call *this = call_of(name, comm, MESSAGE);                                                               \
    describe;                                                                                                \
    enter(this);                                                                                             \
    charge_message(comm, charged, share, type);                                                              \
    int result = call;

#define SEND(name, manner, call)                                                                             \
    POINT(name, sends_in(manner, this, comm, to, tag, count, type), to, count, type, call)                   \
    return leave(result)

#define START_OF_SEND(name, manner, call)                                                                    \
    POINT("start of " name,                                                                                  \
          (sends_in(manner, this, comm, to, tag, count, type), x = departs(this, x, count, type)), to,       \
          count, type, call)                                                                                 \
    return leave(request_started(this, result, comm, *request))

/* A receive costs its sender. Where the message came from is told by the status, if need be by one of our own. */
#define RECEIVE(name, describe, call)                                                                        \
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;                                      \
    POINT(name, describe, MPI_PROC_NULL, 0, MPI_DATATYPE_NULL, call)                                         \
    came_from(this, comm, got);                                                                              \
    return leave(result)

/* Open MPI takes short messages without a buffer too; other libraries do not. */
static int attached;

void must_fit_buffer(const Call *call, double bytes)
{
    if (call && bytes + MPI_BSEND_OVERHEAD > attached)
        misuse("MPI_Buffer_attach lends MPI room: for each message its bytes and MPI_BSEND_OVERHEAD",
               "%s: there is no room for it in a buffer", call->name);
}

static void sends_in(Manner manner, Call *call, MPI_Comm comm, int to, int tag, int count, MPI_Datatype type)
{
    sends_message(call, comm, to, tag, count, type);
    if (!call)
        return;
    call->manner = manner;
    if (manner == BUFFERED)
        must_fit_buffer(call, bytes_of(to, count, type));
}

int MPI_Send(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    SEND("send", ORDINARY, PMPI_Ssend(x, count, type, to, tag, comm)); /* as large messages would */
}

int MPI_Ssend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    SEND("send", ORDINARY, PMPI_Ssend(x, count, type, to, tag, comm));
}

int MPI_Isend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    START_OF_SEND("send", ORDINARY, PMPI_Isend(x, count, type, to, tag, comm, request));
}

int MPI_Issend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    START_OF_SEND("send", ORDINARY, PMPI_Issend(x, count, type, to, tag, comm, request));
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

int MPI_Bsend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    SEND("buffered send", BUFFERED, PMPI_Bsend(x, count, type, to, tag, comm));
}

int MPI_Ibsend(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    START_OF_SEND("buffered send", BUFFERED, PMPI_Ibsend(x, count, type, to, tag, comm, request));
}

int MPI_Buffer_attach(void *buffer, int size)
{
    enter(call_of("attach of the buffer", MPI_COMM_NULL, LOCAL));
    int result = PMPI_Buffer_attach(buffer, size);
    attached = result == MPI_SUCCESS ? size : attached;
    return leave(result);
}

/* It waits for every message in the buffer. */
int MPI_Buffer_detach(void *buffer, int *size)
{
    Call *this = call_of("detach of the buffer", MPI_COMM_NULL, LOCAL), *sent;
    enter(this);
    for (int64_t i = this ? index_of_current() : -1; (sent = call_at(i)); i--)
        if (sent->manner == BUFFERED && !sent->starts && !sent->completed)
            sent->waited_by = index_of_current();
    int result = PMPI_Buffer_detach(buffer, size);
    for (int64_t i = this ? index_of_current() : -1; (sent = call_at(i)); i--)
        if (sent->manner == BUFFERED && !sent->starts)
            sent->completed = 1;
    attached = 0;
    return leave(result);
}

int MPI_Recv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    RECEIVE("receive", receives_message(this, comm, from, tag, count, type),
            PMPI_Recv(x, count, type, from_whom(this, comm, from, tag), tag, comm, got));
}

int MPI_Irecv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    POINT("start of receive",
          (receives_message(this, comm, from, tag, count, type), x = lands_message(this, x, count, type)),
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
    POINT("send and receive", exchanges(this, comm, to, tag, from, y_tag, count, type, y_count, y_type), to,
          count, type, PMPI_Sendrecv(x, count, type, to, tag, y, y_count, y_type, from, y_tag, comm, got))
    came_from(this, comm, got);
    return leave(result);
}

int MPI_Sendrecv_replace(void *x, int count, MPI_Datatype type, int to, int tag, int from, int y_tag,
                         MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;
    POINT("send and receive", exchanges(this, comm, to, tag, from, y_tag, count, type, count, type), to,
          count, type, PMPI_Sendrecv_replace(x, count, type, to, tag, from, y_tag, comm, got))
    came_from(this, comm, got);
    return leave(result);
}

/* ---- messages that a probe takes for a receive of its own ----------------------------------------------------------- */

enum { KEPT = 256 };

typedef struct Taken {
    MPI_Message message;
    MPI_Comm comm;
    int from, tag;
    int64_t index; /* of the probe */
} Taken;

static struct {
    Taken taken[KEPT];
    int count;
} taken;

static void take(const Call *probe, MPI_Message message, MPI_Comm comm, const MPI_Status *status)
{
    if (!probe || message == MPI_MESSAGE_NULL || message == MPI_MESSAGE_NO_PROC)
        return;
    if (taken.count == KEPT)
        misuse("receive each with MPI_Mrecv", "%s: %d messages were found and not received", probe->name,
               KEPT);
    taken.taken[taken.count++] =
        (Taken){message, comm, status->MPI_SOURCE, status->MPI_TAG, index_of_current()};
}

static Taken given(MPI_Message message)
{
    for (int i = 0; i < taken.count; i++)
        if (taken.taken[i].message == message) {
            Taken found = taken.taken[i];
            taken.taken[i] = taken.taken[--taken.count];
            return found;
        }
    return (Taken){.message = MPI_MESSAGE_NULL, .comm = MPI_COMM_NULL};
}

static void receives_taken(Call *call, const Taken *t, int count, MPI_Datatype type)
{
    if (!call || t->comm == MPI_COMM_NULL)
        return;
    receives_message(call, t->comm, t->from, t->tag, count, type);
    call->taken = t->index + 1;
}

int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;
    POINT("probe", looks_for(this, comm, from, tag), MPI_PROC_NULL, 0, MPI_DATATYPE_NULL,
          PMPI_Mprobe(from, tag, comm, message, got))
    came_from(this, comm, got);
    take(this, *message, comm, got);
    return leave(result);
}

int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;
    comm = substituted(comm);
    int result = PMPI_Improbe(from, tag, comm, flag, message, got);
    if (result != MPI_SUCCESS || !*flag)
        return result;
    Call *this = call_of("probe", comm, MESSAGE);
    looks_for(this, comm, got->MPI_SOURCE, got->MPI_TAG);
    enter(this);
    take(this, *message, comm, got);
    return leave(result);
}

int MPI_Mrecv(void *x, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
    Taken t = given(*message);
    MPI_Comm comm = t.comm;
    POINT("receive", receives_taken(this, &t, count, type), MPI_PROC_NULL, 0, type,
          PMPI_Mrecv(x, count, type, message, status))
    return leave(result);
}

int MPI_Imrecv(void *x, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    Taken t = given(*message);
    MPI_Comm comm = t.comm;
    POINT("start of receive",
          (receives_taken(this, &t, count, type), x = lands_message(this, x, count, type)), MPI_PROC_NULL, 0,
          type, PMPI_Imrecv(x, count, type, message, request))
    return leave(request_started(this, result, comm, *request));
}
