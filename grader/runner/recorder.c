#include "grader/runner/recorder.h"

#include <string.h>

#include "base/run.h"
#include "grader/runner/record.h"

/* What takes a few calls when done well takes a few thousand number by number. */
enum { MANY_CALLS = 20000 };

typedef struct CommName {
    MPI_Comm comm;
    uint64_t members;
    int64_t collectives;
} CommName;

static struct {
    RankHeader *header;
    MPI_Comm world;
    Traffic traffic;
    int64_t started, ended, calls;
    CommName comms[64];
    int count;
    int depth; /* MPI_Allreduce of ROMIO and the like call MPI themselves: count the outermost only */
} recorder;

void recorder_begin(RankHeader *header, MPI_Comm world)
{
    recorder.header = header;
    recorder.world = world;
    recorder.traffic = (Traffic){0};
    recorder.started = recorder.ended = recorder.calls = 0;
    recorder.count = 0;
    recorder.depth = 0;
}

void recorder_end(void)
{
    recorder.header = NULL;
}

Traffic recorder_traffic(void)
{
    return recorder.traffic;
}

int64_t recorder_open_requests(void)
{
    return recorder.started - recorder.ended;
}

bool recorder_active(void)
{
    return recorder.header != NULL;
}

void request_started(void)
{
    recorder.started++;
}

void requests_ended(int64_t count)
{
    recorder.ended += count;
}

MPI_Comm substituted(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD && recorder.header ? recorder.world : comm;
}

static uint64_t members_of(MPI_Comm comm)
{
    MPI_Group group, all;
    int size, ranks[MAX_RANKS], world[MAX_RANKS];
    uint64_t members = 0;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_size(group, &size);
    for (int i = 0; i < size && i < MAX_RANKS; i++)
        ranks[i] = i;
    PMPI_Group_translate_ranks(group, size < MAX_RANKS ? size : MAX_RANKS, ranks, all, world);
    for (int i = 0; i < size && i < MAX_RANKS; i++)
        members |= (uint64_t)1 << world[i];
    PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    return members;
}

static CommName *named(MPI_Comm comm)
{
    for (int i = 0; i < recorder.count; i++)
        if (recorder.comms[i].comm == comm)
            return &recorder.comms[i];
    if (recorder.count == 64)
        recorder.count = 0;
    CommName *name = &recorder.comms[recorder.count++];
    *name = (CommName){comm, members_of(comm), 0};
    return name;
}

void forget(MPI_Comm comm)
{
    for (int i = 0; i < recorder.count; i++)
        if (recorder.comms[i].comm == comm)
            recorder.comms[i] = recorder.comms[--recorder.count];
}

void enter(const char *name, MPI_Comm comm, bool collective, int64_t count, MPI_Datatype type, int peer)
{
    RankHeader *header = recorder.header;
    if (!header || recorder.depth++ > 0)
        return;
    if (recorder.calls++ == MANY_CALLS)
        misuse("look at the end of your loop", "%s: there is no end of calls to MPI in this pass", name);
    Call call = {.count = count, .peer = peer, .address = callsite()};
    strncpy(call.name, name, sizeof call.name - 1);
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &call.type_size);
    if (comm != MPI_COMM_NULL) {
        CommName *known = named(comm);
        call.members = known->members;
        call.number = collective ? ++known->collectives : 0;
    }
    header->call = call;
    atomic_store(&header->state, IN_MPI);
    atomic_fetch_add(&header->events, 1);
}

int leave(int result)
{
    if (recorder.header && --recorder.depth == 0) {
        atomic_store(&recorder.header->state, PLAYING);
        atomic_fetch_add(&recorder.header->events, 1);
    }
    return result;
}

/* What this rank is charged with, in numbers of 4 bytes. */
void charge(bool collective, double elements, MPI_Datatype type)
{
    int size = 0;
    if (!recorder.header || recorder.depth > 1)
        return;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &size);
    recorder.traffic.elements += elements * size / 4;
    recorder.traffic.calls += collective;
}

int size_of(MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

double all_reduce_share(MPI_Comm comm, double count)
{
    double n = size_of(comm);
    return 2 * (n - 1) * count / n;
}

double gather_share(MPI_Comm comm, double whole_count)
{
    double n = size_of(comm);
    return (n - 1) * whole_count / n;
}

/* ---- communicators: set up, not traffic ---------------------------------------------------------------- */

#define SET_UP(name, call)                                                                                   \
    comm = substituted(comm);                                                                                \
    enter(name, comm, true, 0, MPI_DATATYPE_NULL, -1);                                                       \
    return leave(call)

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    SET_UP("split", PMPI_Comm_split(comm, color, key, out));
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out)
{
    SET_UP("dup", PMPI_Comm_dup(comm, out));
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *out)
{
    SET_UP("create", PMPI_Comm_create(comm, group, out));
}

int MPI_Comm_free(MPI_Comm *comm)
{
    enter("free", *comm, true, 0, MPI_DATATYPE_NULL, -1);
    forget(*comm);
    return leave(PMPI_Comm_free(comm));
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    return PMPI_Comm_rank(substituted(comm), rank);
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    return PMPI_Comm_size(substituted(comm), size);
}

int MPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    return PMPI_Comm_group(substituted(comm), group);
}

/* A lab ends neither MPI nor the run of its grader. */
int MPI_Finalize(void)
{
    if (recorder.header)
        misuse("the runtime ends MPI, not a lab", "MPI_Finalize was called");
    return PMPI_Finalize();
}

int MPI_Abort(MPI_Comm comm, int code)
{
    if (recorder.header)
        misuse("return from the function instead", "MPI_Abort was called: it ends every rank");
    return PMPI_Abort(comm, code);
}

/* What MPI refuses is told with the student's line, and ends the case instead of the launch. */
static void refused(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class = MPI_ERR_UNKNOWN;
    PMPI_Error_class(*code, &class);
    PMPI_Error_string(*code, text, &length);
    if (!recorder.header)
        PMPI_Abort(MPI_COMM_WORLD, 1);
    if (class == MPI_ERR_RANK || class == MPI_ERR_ROOT)
        misuse("ranks count from 0 within a group", "%s: there is no rank %d in this group of %d",
               recorder.header->call.name, recorder.header->call.peer, size_of(*comm));
    if (class == MPI_ERR_TRUNCATE)
        misuse("every rank of the group brings the same count",
               "%s: what another rank sent is longer than what this rank expects",
               recorder.header->call.name);
    misuse("look at the arguments of this call", "%s: %.200s", recorder.header->call.name, text);
}

void recorder_catch_errors(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(refused, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
}
