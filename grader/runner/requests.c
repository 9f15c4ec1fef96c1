/* Requests: which call started which, and the calls that complete them. */
#include <sched.h>
#include <stdlib.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/runner/flight.h"
#include "grader/runner/recorder.h"

enum { KEPT = 4096, SHY = 8 };

/* ---- which call started which --------------------------------------------------------------------------------------- */

typedef struct Started {
    MPI_Request request;
    CommName known; /* of its communicator, which may be freed before */
    int64_t index;  /* index of the call */
    Flight flight;
    int tests;
    int64_t series; /* operations_so_far() when it was last tested */
    int in_series;  /* how often since */
} Started;

static struct {
    Started started[KEPT];
    int count;
} requests;

/* A series of polls in vain, with no other call and no operation in between. If it asks for the same
 * thing often, the rank counts as waiting: the record has a call that lasts from then on. */
static struct {
    int64_t index; /* of that call, or -1 */
    int64_t vain;  /* so many polls in the series */
    int64_t since; /* progress() before the last of them */
    bool mixed;    /* for messages of several kinds: no one call says what the rank waits for */
} polls = {.index = -1};

/* Requests left over from an earlier case keep their memory, to which MPI may still write. A case may
 * have ended within a series of polls. */
void requests_begin(void)
{
    requests.count = 0;
    polls.index = -1;
    poll_ends();
}

int64_t recorder_open_requests(void)
{
    return requests.count;
}

int64_t recorder_open_requests_are_late(void)
{
    for (int i = 0; i < requests.count; i++) {
        Call *call = call_at(requests.started[i].index);
        if (call)
            call->late = 1;
    }
    return requests.count;
}

/* A request that completes at once may reuse an earlier handle. */
static void together_if_known(MPI_Request request, Flight *flight)
{
    for (int i = 0; i < requests.count; i++) {
        Started *s = &requests.started[i];
        if (s->request != request)
            continue;
        flight_ends(&s->flight, call_at(s->index), NULL);
        flight_ends(flight, NULL, NULL);
    }
}

static bool overlaps_any(Piece piece, const MemoryPieces *all)
{
    for (int i = 0; i < all->count; i++)
        if (pieces_overlap(piece, all->piece[i]))
            return true;
    return false;
}

/* Ignores what an earlier pass started and did not wait for: its memory may have another use by now,
 * and the end of the case reports it. */
void refuse_in_flight(const Call *call, Piece piece, bool fills)
{
    for (int i = 0; call && i < requests.count; i++) {
        const Flight *flight = &requests.started[i].flight;
        const Call *before = call_at(requests.started[i].index);
        if (before && label_equal(&before->where, &call->where) &&
            (overlaps_any(piece, &flight->received) ||
             (fills && overlaps_any(piece, &flight->sent))))
            misuse("wait for it first, or use a buffer that has no other use",
                   "%s: its buffer overlaps that of a call that has not completed (%s)",
                   _(call->name), _(before->name));
    }
}

int request_started(Call *call, int result, MPI_Comm comm, MPI_Request request)
{
    Flight flight = flight_of_call();
    if (!call || request == MPI_REQUEST_NULL) {
        flight_ends(&flight, call, NULL);
        return result;
    }
    together_if_known(request, &flight);
    if (requests.count == KEPT)
        misuse("wait for started exchanges before starting more",
               "%s: %d exchanges are already under way", _(call->name), KEPT);
    requests.started[requests.count++] =
        (Started){request, *named(comm), index_of_current(), flight, 0, 0, 0};
    return result;
}

static void ended(MPI_Request request, const MPI_Status *status, bool told)
{
    for (int i = 0; i < requests.count; i++) {
        if (requests.started[i].request != request)
            continue;
        Started s = requests.started[i];
        Call *call = call_at(s.index);
        if (call) {
            call->completed = 1;
            came_from(call, &s.known, status, told);
        }
        requests.started[i] = requests.started[--requests.count];
        flight_ends(&s.flight, call, call && call->number ? NULL : status);
        return;
    }
}

/* Records that the call at `index` waits for a request, or (-1) that none does any longer. */
static void waits_for(MPI_Request request, int64_t index)
{
    for (int i = 0; i < requests.count; i++) {
        Call *call =
            requests.started[i].request == request ? call_at(requests.started[i].index) : NULL;
        if (call)
            call->waited_by = index;
    }
}

/* The requests of a completing call, and a copy from before it, because the call changes them. */
typedef struct Ending {
    int count;
    MPI_Request *requests, *before;
    MPI_Status *statuses, *own;
} Ending;

static Ending ending_of(int count, MPI_Request given[], MPI_Status *statuses)
{
    Ending e = {.count = count > 0 && given ? count : 0, .requests = given, .statuses = statuses};
    e.before = malloc((size_t)(e.count + 1) * sizeof *e.before);
    /* NOLINTNEXTLINE(misc-redundant-expression): one value in Open MPI, two in the standard */
    if (statuses == MPI_STATUSES_IGNORE || statuses == MPI_STATUS_IGNORE)
        e.statuses = e.own = calloc((size_t)e.count + 1, sizeof *e.own);
    for (int i = 0; i < e.count; i++)
        e.before[i] = given[i];
    return e;
}

/* Processes MPI's results. @param over how many requests are complete, by their statuses
 * @param which the request to which each status belongs; NULL: in order */
static int ends(const Ending *e, int over, const int which[], int result)
{
    for (int i = 0; i < over; i++) {
        int k = which ? which[i] : i;
        if (k >= 0 && k < e->count && e->before[k] != MPI_REQUEST_NULL)
            ended(e->before[k], &e->statuses[i], !e->own);
    }
    for (int i = 0; i < e->count; i++)
        if (e->requests[i] != MPI_REQUEST_NULL)
            waits_for(e->requests[i], -1);
    free(e->before);
    free(e->own);
    return result;
}

/* Ends the case if a lab waits for a request that is complete, by a copy of its handle. MPI has
 * freed it, and may crash. */
static void refuse_copies(const Ending *e)
{
    for (int i = 0; i < e->count; i++) {
        int times = 0;
        for (int k = 0; e->before[i] != MPI_REQUEST_NULL && k <= i; k++)
            times += e->before[k] == e->before[i];
        for (int k = 0; times > 0 && k < requests.count; k++)
            times -= requests.started[k].request == e->before[i];
        if (times > 0)
            misuse("each start needs exactly one wait: MPI_Wait sets its argument to "
                   "MPI_REQUEST_NULL, but no copy of it",
                   "wait: this request is not in progress");
    }
}

static void enter_wait(const Ending *e, bool some)
{
    Call *call = call_of("wait", MPI_COMM_NULL, LOCAL);
    bool active = false;
    for (int i = 0; i < e->count; i++)
        active = active || e->before[i] != MPI_REQUEST_NULL;
    if (call)
        refuse_copies(e);
    if (call)
        call->some = some;
    if (!active)
        waits_for_nothing(call);
    enter(call);
    for (int i = 0; call && i < e->count; i++)
        waits_for(e->before[i], index_of_current());
}

/* `call` may complete some or all of the requests; `over` and `which` as in ends(). */
#define WAIT(count, requests, statuses, some, call, over, which)                                   \
    Ending e = ending_of(count, requests, statuses);                                               \
    enter_wait(&e, some);                                                                          \
    int result = leave(call);                                                                      \
    return ends(&e, over, which, result)

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    WAIT(1, request, status, false, PMPI_Wait(request, e.statuses), 1, NULL);
}

int MPI_Waitall(int count, MPI_Request all[], MPI_Status statuses[])
{
    WAIT(count, all, statuses, false, PMPI_Waitall(count, all, e.statuses), e.count, NULL);
}

int MPI_Waitany(int count, MPI_Request all[], int *index, MPI_Status *status)
{
    WAIT(count, all, status, true, PMPI_Waitany(count, all, index, e.statuses), 1, index);
}

int MPI_Waitsome(int count, MPI_Request all[], int *done, int indices[], MPI_Status statuses[])
{
    WAIT(count, all, statuses, true, PMPI_Waitsome(count, all, done, indices, e.statuses),
         *done == MPI_UNDEFINED ? 0 : *done, indices);
}

/* ---- tests: calls in which a rank cannot wait ----------------------------------------------------------------------- */

/* A message may take its time, so the first SHY tests of a request report that it is not complete. */
static bool not_yet(int count, const MPI_Request asked[])
{
    bool shy = false;
    for (int i = 0; i < requests.count; i++)
        for (int k = 0; k < count; k++)
            if (requests.started[i].request == asked[k])
                shy = requests.started[i].tests++ < SHY || shy;
    return shy;
}

void poll_ends(void)
{
    Call *call = polls.index < 0 ? NULL : call_at(polls.index);
    for (int i = 0; call && i < requests.count; i++) {
        Call *started = call_at(requests.started[i].index);
        if (started && started->waited_by == polls.index)
            started->waited_by = -1;
    }
    if (call)
        stays_no_longer(call);
    polls.index = -1;
    polls.vain = 0;
    polls.mixed = false;
}

int64_t polled_in_vain(Call **call)
{
    if (progress() != polls.since)
        poll_ends();
    polls.since = progress();
    *call = polls.index < 0 ? NULL : call_at(polls.index);
    if (*call)
        sched_yield(); /* counts this poll */
    polls.vain++;
    return polls.mixed ? 0 : polls.vain;
}

void poll_waits_in(Call *call)
{
    if (!call)
        return;
    call->polls = 1;
    stays_in(call);
    polls.index = index_of_current();
    polls.since = progress();
}

void poll_is_mixed(void)
{
    poll_ends();
    polls.mixed = true;
}

/* How often the rank has asked for one of these requests, at most, without an operation in between.
 * Other calls in between change nothing. */
static int asked_most(const Ending *e)
{
    const int64_t series = operations_so_far();
    int most = 0;
    for (int i = 0; i < e->count; i++)
        for (int k = 0; k < requests.count; k++) {
            Started *s = &requests.started[k];
            if (s->request != e->before[i])
                continue;
            s->in_series = s->series == series ? s->in_series + 1 : 1;
            s->series = series;
            most = s->in_series > most ? s->in_series : most;
        }
    return most;
}

/* Records that the rank waits for these requests, or for one of those of the series. A loop until a
 * request is complete tests it more than SHY times. */
static void waits_for_tested(const Ending *e, bool some)
{
    Call *call = NULL;
    if (!recorder_active() || polled_in_vain(&call) == 0 || asked_most(e) < SHY)
        return;
    if (call && call->rule != LOCAL) {
        poll_is_mixed();
        return;
    }
    const bool begins = !call;
    if (begins) {
        call = call_of("wait", MPI_COMM_NULL, LOCAL);
        if (call)
            call->some = some;
        poll_waits_in(call);
    }
    for (int i = 0; call && i < requests.count; i++) {
        Call *started = call_at(requests.started[i].index);
        if (!started || requests.started[i].series != operations_so_far() ||
            started->waited_by == polls.index)
            continue;
        call->some = call->some || !begins;
        started->waited_by = polls.index;
    }
}

/* Processes the results of a test, as ends() does. */
static int tested(const Ending *e, bool some, int over, const int which[], int result)
{
    bool active = false;
    for (int i = 0; i < e->count; i++)
        active = active || e->before[i] != MPI_REQUEST_NULL;
    if (over > 0 || !active) {
        ends(e, over, which, result);
        poll_ends();
        return result;
    }
    waits_for_tested(e, some);
    free(e->before);
    free(e->own);
    return result;
}

/* `found` gets a flag or the number of complete requests; `index` gets MPI_UNDEFINED while it is too
 * early. */
#define TEST(count, requests, statuses, some, found, index, call, over, which)                     \
    Ending e = ending_of(count, requests, statuses);                                               \
    if (not_yet(count, requests)) {                                                                \
        *(found) = 0;                                                                              \
        *(index) = MPI_UNDEFINED;                                                                  \
        return tested(&e, some, 0, NULL, MPI_SUCCESS);                                             \
    }                                                                                              \
    int result = call;                                                                             \
    return tested(&e, some, over, which, result)

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    TEST(1, request, status, true, flag, &(int){0}, PMPI_Test(request, flag, e.statuses), *flag,
         NULL);
}

int MPI_Testall(int count, MPI_Request all[], int *flag, MPI_Status statuses[])
{
    TEST(count, all, statuses, false, flag, &(int){0}, PMPI_Testall(count, all, flag, e.statuses),
         *flag ? e.count : 0, NULL);
}

int MPI_Testany(int count, MPI_Request all[], int *index, int *flag, MPI_Status *status)
{
    TEST(count, all, status, true, flag, index, PMPI_Testany(count, all, index, flag, e.statuses),
         *flag, index);
}

int MPI_Testsome(int count, MPI_Request all[], int *done, int indices[], MPI_Status statuses[])
{
    TEST(count, all, statuses, true, done, &(int){0},
         PMPI_Testsome(count, all, done, indices, e.statuses), *done == MPI_UNDEFINED ? 0 : *done,
         indices);
}
