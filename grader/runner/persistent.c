/* Persistent requests: described once and started again and again. Each start is a call like any other. */
#include <mpi.h>

#include "base/run.h"
#include "grader/runner/record.h"

enum { KEPT = 1024 };

typedef struct Described {
    MPI_Request request;
    MPI_Comm comm;
    Call call;    /* what each start says of itself */
    double bytes; /* that it sends */
    Flight flight;
} Described;

static struct {
    Described described[KEPT];
    int count;
} persistent;

static Described *described_as(MPI_Request request)
{
    for (int i = 0; i < persistent.count; i++)
        if (persistent.described[i].request == request)
            return &persistent.described[i];
    return NULL;
}

/* `this` has described `d`, or has failed. */
static int keep(const Call *this, const Described *d, const void *maker, int result)
{
    if (!this || result != MPI_SUCCESS)
        return leave(result);
    if (persistent.count == KEPT)
        misuse("free with MPI_Request_free what is not started again", "%s: there are %d persistent requests",
               this->name, KEPT);
    persistent.described[persistent.count++] = *d;
    object_made(PERSISTENT_REQUEST, d->request, maker);
    return leave(result);
}

#define DESCRIBE(word, start, how, describe, sent, make)                                                     \
    comm = substituted(comm);                                                                                \
    Call *this = call_of(word, MPI_COMM_NULL, LOCAL);                                                        \
    Described d = {.comm = comm, .call = {.name = start, .manner = how, .to = NOBODY, .from = NOBODY}};      \
    if (this) {                                                                                              \
        describe;                                                                                            \
        d.bytes = sent;                                                                                      \
    }                                                                                                        \
    enter(this);                                                                                             \
    int result = make;                                                                                       \
    d.request = *request;                                                                                    \
    d.flight = flight_begun();                                                                               \
    flight_waits(&d.flight);                                                                                 \
    return keep(this, &d, __builtin_return_address(0), result)

#define DESCRIBE_SEND(word, start, how, make)                                                                \
    DESCRIBE(word, start, how,                                                                               \
             (sends_message(&d.call, comm, to, tag, count, type), x = departs(this, x, count, type)),        \
             bytes_of(to, count, type), make)

int MPI_Send_init(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    DESCRIBE_SEND("send_init", "start of send", ORDINARY,
                  PMPI_Send_init(x, count, type, to, tag, comm, request));
}

int MPI_Ssend_init(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    DESCRIBE_SEND("ssend_init", "start of send", ORDINARY,
                  PMPI_Ssend_init(x, count, type, to, tag, comm, request));
}

int MPI_Bsend_init(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    DESCRIBE_SEND("bsend_init", "start of buffered send", BUFFERED,
                  PMPI_Bsend_init(x, count, type, to, tag, comm, request));
}

int MPI_Rsend_init(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    DESCRIBE_SEND("rsend_init", "start of ready send", READY,
                  PMPI_Rsend_init(x, count, type, to, tag, comm, request));
}

int MPI_Recv_init(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    DESCRIBE(
        "recv_init", "start of receive", ORDINARY,
        (receives_message(&d.call, comm, from, tag, count, type), x = lands_message(this, x, count, type)), 0,
        PMPI_Recv_init(x, count, type, from, tag, comm, request));
}

/* What each start says of itself. */
static void repeats(Call *call, const Call *described)
{
    if (!call)
        return;
    call->manner = described->manner;
    call->to = described->to;
    call->to_tag = described->to_tag;
    call->from = described->from;
    call->from_tag = described->from_tag;
    call->sent[0] = described->sent[0];
    call->received[0] = described->received[0];
}

static int start(MPI_Request *request, Described *d)
{
    Call *this = call_of(d->call.name, d->comm, MESSAGE);
    if (this && request_is_open(*request))
        misuse("wait for it before it is started again", "MPI_Start: this request is under way");
    repeats(this, &d->call);
    if (d->call.manner == BUFFERED)
        must_fit_buffer(this, d->bytes);
    enter(this);
    charge(false, d->bytes, MPI_BYTE);
    if (this)
        flight_starts(&d->flight);
    int result = PMPI_Start(request);
    return leave(request_started_again(this, result, d->comm, *request, &d->flight));
}

int MPI_Start(MPI_Request *request)
{
    Described *d = described_as(*request);
    if (d)
        return start(request, d);
    enter(call_of("start", MPI_COMM_NULL, LOCAL));
    return leave(PMPI_Start(request));
}

int MPI_Startall(int count, MPI_Request all[])
{
    int result = MPI_SUCCESS;
    for (int i = 0; i < count && result == MPI_SUCCESS; i++)
        result = MPI_Start(&all[i]);
    return result;
}

int MPI_Request_free(MPI_Request *request)
{
    Described *d = described_as(*request);
    enter(call_of("free of a request", MPI_COMM_NULL, LOCAL));
    request_let_go(*request);
    if (d) {
        object_freed(d->request);
        flight_forgotten(&d->flight);
        *d = persistent.described[--persistent.count];
    }
    return leave(PMPI_Request_free(request));
}
