/* Records the calls that a rank makes, in its ring; what it is charged; and what it holds in
 * full. */
#include "grader/runner/recorder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/tape.h"
#include "base/clock.h"
#include "base/language.h"
#include "base/run.h"
#include "grader/labs/scenario.h"
#include "grader/labs/work.h"

/* A lab that works element by element makes thousands of calls where a few suffice. */
enum { MANY_CALLS = 20000 };

typedef struct Recorder {
    RankHeader *header;
    Rings *rings;
    MPI_Comm world;
    Traffic traffic;
    int64_t calls;
    Call *current;
    Case c;
    int depth;       /* some MPI functions call others: count only the outermost */
    int starting;    /* so many functions that must return at once are running */
    int64_t started; /* so many were called */
} Recorder;

static Recorder recorder;

void recorder_begin(RankHeader *header, Rings *rings, MPI_Comm world, const Case *c, int number)
{
    atomic_store(&rings->calls, 0);
    atomic_store(&rings->operations, 0);
    atomic_store(&rings->number, number);
    recorder = (Recorder){.header = header, .rings = rings, .world = world, .c = *c};
    names_begin(world, number);
    requests_begin();
    messages_begin();
    objects_begin();
}

void recorder_end(void)
{
    recorder.header = NULL;
}

Traffic recorder_traffic(void)
{
    return recorder.traffic;
}

bool recorder_active(void)
{
    return recorder.header != NULL;
}

Label recorder_place(void)
{
    return recorder.header->where;
}

bool is_called_by_lab(const void *caller)
{
    extern const char __executable_start[], etext[];
    const uintptr_t at = (uintptr_t)caller;
    const void *line = callsite();
    return line && (line == caller || at < (uintptr_t)__executable_start || at >= (uintptr_t)etext);
}

bool recorder_repeats(void)
{
    return is_repeated(&recorder.c, &recorder.header->where);
}

MPI_Comm substituted(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD && recorder.header ? recorder.world : comm;
}

static int64_t nanoseconds(void)
{
    return (int64_t)(1e9 * clock_now());
}

Call *call_at(int64_t index)
{
    int64_t calls = atomic_load(&recorder.rings->calls);
    return index >= 0 && index < calls && index >= calls - RING_CALLS
               ? &recorder.rings->call[index % RING_CALLS]
               : NULL;
}

int64_t calls_so_far(void)
{
    return atomic_load(&recorder.rings->calls);
}

int64_t index_of_current(void)
{
    return atomic_load(&recorder.rings->calls) - 1;
}

/* The functions that must only start an exchange. In the runner of a lab with one, the linker leads
 * all calls to it through its wrapper, which knows whether the rank is in it by a count: the stack
 * would tell only if no lab could change it. In other runners, __real_... is NULL. */
#define ONLY_STARTS(name, parameters, arguments)                                                   \
    __attribute__((weak)) void __real_##name parameters;                                           \
    void __wrap_##name parameters;                                                                 \
    void __wrap_##name parameters                                                                  \
    {                                                                                              \
        recorder.starting++;                                                                       \
        recorder.started++;                                                                        \
        __real_##name arguments;                                                                   \
        recorder.starting--;                                                                       \
    }
ONLY_STARTS(bucket_ready, (Bucket * bucket, const Mesh *mesh), (bucket, mesh))
ONLY_STARTS(bucket_filled, (Bucket * bucket, int pass, int passes, const Mesh *mesh),
            (bucket, pass, passes, mesh))
ONLY_STARTS(stage_send, (Stage * stage, Tensor *x, int to), (stage, x, to))

bool recorder_only_starts(void)
{
    return __real_bucket_ready || __real_bucket_filled || __real_stage_send;
}

Call *call_of(const char *name, MPI_Comm comm, Rule rule)
{
    const RankHeader *header = recorder.header;
    if (!header || recorder.depth > 0)
        return NULL;
    poll_ends();
    if (recorder.calls++ == MANY_CALLS)
        misuse("does the loop end? One call can send many numbers",
               "%s: more than 20,000 MPI calls in one case", name);
    Call *call = &recorder.rings->call[atomic_load(&recorder.rings->calls) % RING_CALLS];
    *call = (Call){
        .rule = (int32_t)rule, .root = NOBODY, .to = NOBODY, .from = NOBODY, .waited_by = -1};
    snprintf(call->name, sizeof call->name, "%s", name);
    call->where = header->where;
    call->address = recorder.c.micros > 0 ? callsite_outermost() : callsite();
    call->inner = callsite();
    call->at_once = recorder.starting > 0;
    if (call->where.what == MAKING_OF && call->where.of == A_LAYER)
        misuse("a layer's ..._new function declares parameters, and the forward pass exchanges",
               "%s: a layer is made without exchanges", _(name));
    recorder.current = call;
    if (comm == MPI_COMM_NULL)
        return call;
    if (is_of_earlier_case(comm))
        misuse("the groups of the mesh are made anew for each case: take them from the mesh in "
               "each call, and keep none in a static or file-scope variable",
               "%s: this group or communicator was made in an earlier case, which has ended", name);
    CommName *known = named(comm);
    call->group = known->id;
    call->members = known->members;
    call->number = rule == MESSAGE || rule == LOCAL ? 0 : ++known->collectives;
    return call;
}

void enter(Call *call)
{
    RankHeader *header = recorder.header;
    if (!header || recorder.depth++ > 0)
        return;
    call->time = nanoseconds();
    call->multiplied = work_so_far();
    atomic_fetch_add(&recorder.rings->calls, 1);
    atomic_store(&header->state, IN_MPI);
    atomic_fetch_add(&header->events, 1);
}

void stays_in(Call *call)
{
    enter(call);
    recorder.depth--;
}

void stays_no_longer(Call *call)
{
    call->ended = nanoseconds();
    call->returned = 1;
    atomic_store(&recorder.header->state, RUNNING);
    atomic_fetch_add(&recorder.header->events, 1);
}

int leave(int result)
{
    if (recorder.header && --recorder.depth == 0)
        stays_no_longer(recorder.current);
    return result;
}

int64_t operations_so_far(void)
{
    return work_so_far() + atomic_load(&recorder.rings->operations) + recorder.started;
}

int64_t progress(void)
{
    return calls_so_far() + operations_so_far();
}

/* What this rank is charged, in numbers of 4 bytes. */
void charge(bool collective, double elements, MPI_Datatype type)
{
    int size = 0;
    if (!recorder.header || recorder.depth > 1)
        return;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &size);
    recorder.current->charged += elements * size / 4;
    recorder.traffic.elements += elements * size / 4;
    recorder.traffic.calls += collective;
    recorder.traffic.empty += !collective && elements == 0;
}

void charge_communicator(void)
{
    if (recorder.header)
        recorder.traffic.made++;
}

int size_of(MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

int rank_in(MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

/* A lab may neither start nor end MPI, nor abort the run. */
int MPI_Init(int *argc, char ***argv)
{
    if (recorder.header)
        misuse("remove the call: the runtime has already started MPI", "MPI_Init was called");
    return PMPI_Init(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    if (recorder.header)
        misuse("remove the call: the runtime has already started MPI",
               "MPI_Init_thread was called");
    return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Finalize(void)
{
    if (recorder.header)
        misuse("the runtime finalises MPI; a lab must not", "MPI_Finalize was called");
    return PMPI_Finalize();
}

int MPI_Abort(MPI_Comm comm, int code)
{
    if (recorder.header)
        misuse("return from the function instead", "MPI_Abort was called: it ends every rank");
    return PMPI_Abort(comm, code);
}

/* MPI errors are reported with the student's line, and end the case instead of the launch. */
static void refused(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class = MPI_ERR_UNKNOWN;
    PMPI_Error_class(*code, &class);
    PMPI_Error_string(*code, text, &length);
    if (!recorder.header)
        PMPI_Abort(MPI_COMM_WORLD, 1);
    /* A call that is not recorded (MPI_Iprobe) leaves the last one in place. */
    const bool recorded = recorder.current && !recorder.current->returned;
    const char *name = recorded ? recorder.current->name : "MPI";
    if ((class == MPI_ERR_RANK || class == MPI_ERR_ROOT) && missing_rank() != MPI_PROC_NULL)
        misuse("ranks are numbered from 0 within a group",
               "%s: there is no rank %d in this group of %d", name, missing_rank(), size_of(*comm));
    if (class == MPI_ERR_TRUNCATE && recorder.current && recorder.current->from == ANYBODY)
        misuse("name the rank, or give each sender a tag of its own",
               "%s from any rank: the first message is longer than this rank expects", name);
    if (class == MPI_ERR_TRUNCATE && recorder.current && recorder.current->rule == MESSAGE)
        misuse("do both ranks refer to the same part of x? Send all of its numbers, as MPI_FLOAT",
               "%s: another rank's message is longer than this rank expects", name);
    if (class == MPI_ERR_TRUNCATE)
        misuse("every rank of the group must make the same calls in the same order, and pass the "
               "same count: is a call left out where a rank has nothing to add? Do the ranks pass "
               "parts of different sizes?",
               "%s: another rank's message is longer than this rank expects", name);
    misuse("look at the arguments of this call", "%s: %.200s", name, text);
}

void recorder_catch_errors(void)
{
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(refused, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}
