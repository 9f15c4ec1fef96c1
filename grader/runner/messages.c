/* Messages between two ranks, recorded and charged with what they send. */
#include <time.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/runner/recorder.h"

/* The memory of a message; empty if the other side is MPI_PROC_NULL. */
static Piece piece_of_message(const void *x, int count, MPI_Datatype type, int other)
{
    return piece_of(x, other == MPI_PROC_NULL ? 0 : count, type);
}

static void sends(Call *call, MPI_Comm comm, int to, int tag, const void *x, int count,
                  MPI_Datatype type)
{
    if (!call)
        return;
    call->to = launch_rank(comm, to);
    call->to_tag = tag;
    call->sent[0] = signature_of(count, type);
    refuse_in_flight(call, piece_of_message(x, count, type, to), false);
}

static void receives(Call *call, MPI_Comm comm, int from, int tag, void *x, int count,
                     MPI_Datatype type)
{
    if (!call)
        return;
    call->from = from == MPI_ANY_SOURCE ? ANYBODY : launch_rank(comm, from);
    call->from_tag = tag == MPI_ANY_TAG ? ANY_TAG : tag;
    call->received[0] = signature_of(count, type);
    refuse_in_flight(call, piece_of_message(x, count, type, from), true);
}

static int64_t tags[MAX_RANKS]; /* 1 + the tag of each rank's last message in this case, or 0 */

void messages_begin(void)
{
    memset(tags, 0, sizeof tags);
}

void came_from(Call *call, const CommName *known, const MPI_Status *status, bool told)
{
    const int source = status->MPI_SOURCE;
    if (!call || call->from == NOBODY || (call->from != ANYBODY && call->from_tag != ANY_TAG))
        return;
    if (call->from == ANYBODY)
        call->from = source >= 0 && source < known->size ? known->order[source] : NOBODY;
    const int tag = status->MPI_TAG, from = call->from;
    int count = 1;
    PMPI_Get_count(status, MPI_BYTE, &count);
    const bool as_before = from >= 0 && from < MAX_RANKS && (!tags[from] || tags[from] == 1 + tag);
    if (told && call->from_tag == ANY_TAG && (count == 0 || !as_before))
        charge(false, 1, MPI_INT); /* the tag says something */
    if (from >= 0 && from < MAX_RANKS)
        tags[from] = 1 + (int64_t)tag;
    call->from_tag = tag;
}

/* The rank whose message a wildcard receive takes; waits until there is one. MPI may take messages
 * from different ranks in any order (MPI 4.0, 3.5: only messages from one rank keep their order).
 * On one machine they nearly always arrive in sending order, so a lab that expects one message from
 * each rank happens to work. So this function prefers the next message from the rank whose message
 * it took last. */
static int from_whom(const Call *call, MPI_Comm comm, int from, int tag)
{
    enum { LOOKS = 100, BETWEEN = 20000 }; /* nanoseconds */
    static int last = MPI_PROC_NULL;
    MPI_Status first;
    if (!call || from != MPI_ANY_SOURCE)
        return from;
    PMPI_Probe(MPI_ANY_SOURCE, tag, comm, &first);
    for (int i = 0, there = 0; last >= 0 && last < size_of(comm) && i < LOOKS; i++) {
        PMPI_Iprobe(last, tag, comm, &there, MPI_STATUS_IGNORE);
        if (there)
            return last;
        nanosleep(&(struct timespec){0, BETWEEN}, NULL);
    }
    return last = first.MPI_SOURCE;
}

/* What a rank sends to itself does not travel. An empty message may say that another is complete. */
static void charge_message(MPI_Comm comm, int to, double count, MPI_Datatype type)
{
    if (to != MPI_PROC_NULL && (to != rank_in(comm) || count == 0))
        charge(false, count, type);
}

/* When a started send may complete: once MPI has a copy, or not before its receive has been
 * posted. */
typedef enum Mode { STANDARD, SYNCHRONOUS, READY } Mode;

static Call *call_of_send(const char *name, MPI_Comm comm, Mode mode, int to, int tag,
                          const void *x, int count, MPI_Datatype type)
{
    Call *call = call_of(name, comm, MESSAGE);
    sends(call, comm, to, tag, x, count, type);
    if (call) {
        call->synchronous = mode == SYNCHRONOUS;
        call->ready = mode == READY;
    }
    return call;
}

/* MPI_<name>, a blocking send, and MPI_<started>, a nonblocking one: they call `at_once` and `start`. */
#define SEND(name, started, said, mode, at_once, start)                                            \
    int MPI_##name(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)    \
    {                                                                                              \
        comm = substituted(comm);                                                                  \
        enter(call_of_send(said, comm, mode, to, tag, x, count, type));                            \
        charge_message(comm, to, count, type);                                                     \
        return leave(at_once(x, count, type, to, tag, comm));                                      \
    }                                                                                              \
                                                                                                   \
    int MPI_##started(const void *x, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                      MPI_Request *request)                                                        \
    {                                                                                              \
        comm = substituted(comm);                                                                  \
        Call *call = begins(call_of_send(said, comm, mode, to, tag, x, count, type));              \
        departs(call, one_piece(piece_of_message(x, count, type, to)));                            \
        enter(call);                                                                               \
        charge_message(comm, to, count, type);                                                     \
        int result = start(x, count, type, to, tag, comm, request);                                \
        return leave(request_started(call, result, comm, *request));                               \
    }

/* MPI_Send and MPI_Isend wait for the receiver, as with a large message. */
SEND(Send, Isend, "send", STANDARD, PMPI_Ssend, PMPI_Issend)
SEND(Ssend, Issend, "send", SYNCHRONOUS, PMPI_Ssend, PMPI_Issend)
SEND(Rsend, Irsend, "ready send", READY, PMPI_Rsend, PMPI_Irsend)

/* Receives a message for `call`, which is already described. Charges this rank only for what it sends
 * in the same call. The status, the lab's or else our own, says who sent the message. */
#define RECEIVES(call, to, count, type, ...)                                                       \
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;                            \
    enter(call);                                                                                   \
    charge_message(comm, to, count, type);                                                         \
    int result = __VA_ARGS__;                                                                      \
    came_from(call, call ? named(comm) : NULL, got, status != MPI_STATUS_IGNORE);                  \
    return leave(result)

int MPI_Recv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    comm = substituted(comm);
    Call *call = call_of("receive", comm, MESSAGE);
    receives(call, comm, from, tag, x, count, type);
    RECEIVES(call, MPI_PROC_NULL, 0, type,
             PMPI_Recv(x, count, type, from_whom(call, comm, from, tag), tag, comm, got));
}

int MPI_Irecv(void *x, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    comm = substituted(comm);
    Call *call = begins(call_of("receive", comm, MESSAGE));
    receives(call, comm, from, tag, x, count, type);
    x = lands(call, x, one_piece(piece_of_message(x, count, type, from)),
              bytes_side_by_side(1, type));
    enter(call);
    int result = PMPI_Irecv(x, count, type, from, tag, comm, request);
    return leave(request_started(call, result, comm, *request));
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    comm = substituted(comm);
    Call *call = call_of("probe", comm, MESSAGE);
    receives(call, comm, from, tag, NULL, 0, MPI_DATATYPE_NULL);
    if (call)
        call->probes = 1;
    RECEIVES(call, MPI_PROC_NULL, 0, MPI_DATATYPE_NULL,
             PMPI_Probe(from_whom(call, comm, from, tag), tag, comm, got));
}

/* Records that the rank waits for such a message, as in MPI_Probe, if it has polled for long. */
static void waits_for_probed(int from, int tag, MPI_Comm comm)
{
    enum { MANY = 64 };
    Call *call = NULL, asked = {0};
    if (!recorder_active() || polled_in_vain(&call) < MANY)
        return;
    receives(&asked, comm, from, tag, NULL, 0, MPI_DATATYPE_NULL);
    if (!call) {
        call = call_of("probe", comm, MESSAGE);
        receives(call, comm, from, tag, NULL, 0, MPI_DATATYPE_NULL);
        if (call)
            call->probes = 1;
        poll_waits_in(call);
    } else if (!call->probes || call->from != asked.from || call->from_tag != asked.from_tag) {
        poll_is_mixed();
    }
}

/* Whether an empty message has come is as much as a number. */
int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    MPI_Status own, *got = status == MPI_STATUS_IGNORE ? &own : status;
    int count = 0;
    comm = substituted(comm);
    launch_rank(comm, from); /* for missing_rank() */
    const int result = PMPI_Iprobe(from, tag, comm, flag, got);
    if (!*flag) {
        waits_for_probed(from, tag, comm);
        return result;
    }
    Call *call = call_of("probe", comm, MESSAGE);
    receives(call, comm, from, tag, NULL, 0, MPI_DATATYPE_NULL);
    if (call)
        call->probes = 1;
    waits_for_nothing(call);
    enter(call);
    came_from(call, call ? named(comm) : NULL, got, status != MPI_STATUS_IGNORE);
    PMPI_Get_count(got, MPI_BYTE, &count);
    if (call && count == 0 && tag != MPI_ANY_TAG)
        charge(false, 1, MPI_INT);
    return leave(result);
}

int MPI_Sendrecv(const void *x, int count, MPI_Datatype type, int to, int tag, void *y, int y_count,
                 MPI_Datatype y_type, int from, int y_tag, MPI_Comm comm, MPI_Status *status)
{
    comm = substituted(comm);
    Call *call = call_of(N_("send and receive"), comm, MESSAGE);
    sends(call, comm, to, tag, x, count, type);
    receives(call, comm, from, y_tag, y, y_count, y_type);
    if (call && pieces_overlap(piece_of_message(x, count, type, to),
                               piece_of_message(y, y_count, y_type, from)))
        misuse("receive into memory that the message does not occupy, or call "
               "MPI_Sendrecv_replace",
               "%s: the send buffer and the receive buffer overlap", _(call->name));
    RECEIVES(call, to, count, type,
             PMPI_Sendrecv(x, count, type, to, tag, y, y_count, y_type, from, y_tag, comm, got));
}

int MPI_Sendrecv_replace(void *x, int count, MPI_Datatype type, int to, int tag, int from,
                         int y_tag, MPI_Comm comm, MPI_Status *status)
{
    comm = substituted(comm);
    Call *call = call_of(N_("send and receive"), comm, MESSAGE);
    sends(call, comm, to, tag, x, count, type);
    receives(call, comm, from, y_tag, x, count, type);
    RECEIVES(call, to, count, type,
             PMPI_Sendrecv_replace(x, count, type, to, tag, from, y_tag, comm, got));
}
