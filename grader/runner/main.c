/* The runner: one rank of a launch. It runs the cases that the judge posts, with the student's lab
 * linked in, and records what it observes. It knows no expected values and gives no verdict. */
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/labs/groups.h"
#include "grader/labs/labels.h"
#include "grader/runner/filter.h"
#include "grader/runner/guard.h"
#include "grader/runner/recorder.h"
#include "mesh/mesh.h"

enum { MEMORY = 1 << 28 }; /* limit of tensors per rank: the cases need a few megabytes */

/* run_ends() and similar functions are called by functions that pass no context. */
static struct {
    Launch *launch;
    RankHeader *header;
    Scenario run;
    Mesh mesh; /* as the case began */
    jmp_buf case_ends;
    int rank;
    int points;   /* occasions in this case on which a rank came late, or could have */
    int notes;    /* broken placement rules in this case */
    int64_t late; /* exchanges that a pass of this case left open */
} runner;

static void nap(long microseconds)
{
    nanosleep(&(struct timespec){0, microseconds * 1000}, NULL);
}

static void write_problem(EntryKind kind, Check check, const Problem *problem, void *address)
{
    double *bytes;
    Entry *entry = stream_entry(&runner.run.stream, kind, (int)check, (Label){0},
                                sizeof *problem / sizeof(double), &bytes);
    memcpy(bytes, problem, sizeof *problem);
    entry->address = address;
    entry->outermost = address == callsite() ? callsite_outermost() : NULL;
}

_Noreturn void run_ends(Problem *problem, void *address)
{
    write_problem(REFUSED, FORWARD, problem, address);
    longjmp(runner.case_ends, 1);
}

void run_noted(Problem *problem, Harm harm, void *address)
{
    static const Check checks[] = {[HARMS_RESULTS] = FORWARD,
                                   [HARMS_GRADIENTS] = WEIGHT_GRADIENT,
                                   [HARMS_GRADIENT_OF_X] = INPUT_GRADIENT};
    enum { ENOUGH = 64 };
    if (++runner.notes <= ENOUGH)
        write_problem(NOTE, checks[harm], problem, address);
}

void run_place(char *text, size_t size)
{
    char words[LABEL_SIZE];
    const Label where = recorder_place();
    snprintf(text, size, "%s", where.of == NOTHING ? "" : label_text(&where, words));
}

_Noreturn void run_todo(int balise, const char *function, void *address)
{
    double *none;
    stream_entry(&runner.run.stream, NOT_STARTED, balise, label_named(function), 0, &none)
        ->address = address;
    longjmp(runner.case_ends, 1);
}

/* Ends the case if the lab has changed what all later numbers depend on: rounding, or the mesh. */
static void must_be_as_before(void)
{
    static volatile const float smallest = FLT_MIN, one = 1, part = FLT_EPSILON / 4;
    const bool nearest = one + part == 1 && -one - part == -1 && one + 3 * part > 1;
    if (!nearest || fegetround() != FE_TONEAREST || smallest / 2 == 0)
        misuse("restore it before the function returns, or leave it as it is",
               "the lab has changed how this rank rounds numbers");
    if (runner.run.mesh && memcmp(runner.run.mesh, &runner.mesh, sizeof runner.mesh) != 0)
        misuse("a function gets the mesh to read it: const Mesh *mesh",
               "the lab has changed the mesh");
}

/* Ends the case if a sanitizer has reported something, or if a write outside a tensor has happened. */
static void end_if_found(void)
{
    must_be_as_before();
    if (sanitizer_has_found())
        longjmp(runner.case_ends, 1);
    int64_t bytes = runner.run.pool ? pool_damaged() : 0;
    if (bytes > 0)
        misuse("make grade with SAN=1 names the line that does it",
               "something was written before or after the %" PRId64 " numbers of a tensor",
               bytes / (int64_t)sizeof(real));
}

static void sanitizer_found(const Problem *problem, void *address)
{
    write_problem(REFUSED, FORWARD, problem, address);
}

/* Delays this rank long enough for the others to reach their next exchange: at the first EACH
 * occasions of a case, then at every third. */
static void come_late(void)
{
    enum { LATE = 1000 /* µs */, EACH = 8, THEN_EVERY = 3 };
    int point = runner.points++;
    if (point < EACH || point % THEN_EVERY == 0)
        nap(LATE);
}

void at(Scenario *run, Label label)
{
    end_if_found();
    runner.header->where = label;
    if (run->c.delay && run->c.world > 1 &&
        runner.rank == (int)(run->c.key % (uint64_t)run->c.world))
        come_late();
}

void not_of_lab(bool begins)
{
    tape_observer()->operation = begins ? NULL : operation_note;
}

Tensor *into_layer(Scenario *run, Tensor *x)
{
    return x;
}

static Traffic before;
static int64_t calls_before;

void traffic_begin(Scenario *run)
{
    before = recorder_traffic();
    calls_before = calls_so_far();
}

/* What exceeds a free allowance, for calls that carry information outside the data. An empty
 * message may tell another rank to continue, but many are data in disguise; so is one whose tag the
 * receiver does not know (came_from()). Creating a
 * communicator involves all ranks of a group, like a collective, but usually happens once. */
static double beyond(int64_t count, int64_t free_ones)
{
    return count > free_ones ? (double)(count - free_ones) : 0;
}

void traffic_end(Scenario *run, Label label, Budget budget, const Sizes *sizes)
{
    enum { EMPTY = 16, COMMUNICATORS = 4 }; /* the free allowances */
    double *numbers;
    Traffic now = recorder_traffic();
    end_if_found();
    if (!recorder_only_starts())
        runner.late += recorder_open_requests_are_late();
    stream_entry(&run->stream, TRAFFIC, COMMUNICATION, label, TRAFFIC_NUMBERS, &numbers);
    numbers[MADE] = beyond(now.made - before.made, COMMUNICATORS);
    numbers[SENT] = now.elements - before.elements + beyond(now.empty - before.empty, EMPTY);
    numbers[COLLECTIVES] = (double)(now.calls - before.calls) + numbers[MADE];
    numbers[SPLIT_BY_ROWS] = sizes->vocabulary;
    numbers[FIRST_CALL] = (double)calls_before;
    numbers[END_CALL] = (double)calls_so_far();
}

static void write_left_over(const char *what, int64_t count, void *address)
{
    double *numbers;
    stream_entry(&runner.run.stream, LEFT_OVER, FORWARD, label_named(what), 1, &numbers)->address =
        address;
    numbers[0] = (double)count;
}

static void finish_case(void)
{
    double *numbers;
    end_if_found();
    if (recorder_open_requests() + runner.late > 0)
        write_left_over("request", recorder_open_requests() + runner.late, NULL);
    recorder_left_behind(runner.launch->control.alone, write_left_over);
    stream_entry(&runner.run.stream, FINISHED, 0, (Label){0}, 0, &numbers);
}

/* Frees what a case allocated, even if it ended in the middle; but not its group, which can only be
 * freed collectively. */
static void clear_away(Scenario *run)
{
    if (run->stage)
        run->stage_free(run->stage);
    if (run->tape)
        tape_free(run->tape);
    if (run->model)
        model_free(run->model);
    if (run->pool)
        pool_free(run->pool);
}

static void open_play(Scenario *run, const Case *c, const Mesh *mesh)
{
    run->c = *c;
    run->mesh = mesh;
    runner.mesh = *mesh;
    run->model = NULL;
    run->pool = pool_new(MEMORY, true);
    run->tape = tape_new(run->pool, mesh);
    *tape_observer() =
        (Observer){.operation = operation_note, .context = rings_of(runner.launch, runner.rank)};
    for (int i = 0; i < 64; i++)
        run->samples[i] = random_below(run, "sample", i, 1 << 20);
}

static void open_mesh(Mesh *mesh, Group *world, const Case *c)
{
    mesh_open(mesh, world, c->tp, c->pp);
    if (!c->apart)
        return;
    mesh->tp = group_split(world, tp_group(c, runner.rank).first, runner.rank);
    mesh->tp_rank = group_rank(mesh->tp);
}

typedef void Start(void);
extern Start *const __start_lab_starts[] __attribute__((weak)), *const __stop_lab_starts[]
    __attribute__((weak));

/* With sanitizers, each lab's object has a function that registers its variables. Whatever else a lab
 * may have put there runs within the first case, under the filter and the limits. */
static void start_sanitizers_of_labs(void)
{
    static bool started;
    Start *const *start = started ? __stop_lab_starts : __start_lab_starts;
    started = true;
    for (; start < __stop_lab_starts; start++)
        (*start)();
}

static void run_case(const Case *c, MPI_Comm world, int number)
{
    static Group *group;
    static Mesh meshes[2]; /* alternating, in case a lab keeps the last case's pointers */
    double *numbers;
    Mesh *mesh = &meshes[number % 2];
    Scenario *run = &runner.run;
    *run = (Scenario){.c = *c, .stream = run->stream};
    stream_entry(&run->stream, CASE, 0, (Label){0}, 0, &numbers);
    recorder_begin(runner.header, rings_of(runner.launch, runner.rank), world, c, number);
    guard_begin();
    sanitizer_begin();
    runner.points = runner.notes = 0;
    runner.late = 0;
    bool complete = setjmp(runner.case_ends) == 0;
    fesetenv(FE_DFL_ENV);
    if (complete) {
        atomic_store(&runner.header->state, RUNNING);
        runner.header->where = label_of(MAKING_OF, THE_GROUPS, 0, 0);
        start_sanitizers_of_labs();
        group = group_of(world, "world");
        open_mesh(mesh, group, c);
        open_play(run, c, mesh);
        lab_scenario(run);
        finish_case();
    }
    bool open = recorder_open_requests() > 0; /* MPI may still write to this case's memory */
    recorder_end();
    if (!open)
        clear_away(run);
    /* A group over MPI stays: a lab may have kept it, and the recorder reports its use. */
    if (complete && !open && !group_is_over_mpi(group))
        group_free(group);
    *mesh = (Mesh){0};
    runner.header->where = (Label){0};
}

static void run_posted_cases(void)
{
    MPI_Comm worlds[MAX_RANKS + 1];
    int size;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int n = 1; n <= size; n++)
        PMPI_Comm_split(MPI_COMM_WORLD, runner.rank < n, runner.rank, &worlds[n]);
    atomic_store(&runner.header->state, IDLE);
    wake(&runner.header->state);
    for (int next = 0;; next++) {
        int posted;
        while ((posted = atomic_load(&runner.launch->control.posted)) == next)
            sleep_while(&runner.launch->control.posted, next, 10000);
        if (posted < 0)
            break;
        Case c = runner.launch->control.current;
        if (runner.rank < c.world) { /* what a case leaves open in its world meets no other case */
            MPI_Comm world;
            PMPI_Comm_dup(worlds[c.world], &world);
            run_case(&c, world, posted);
        }
        atomic_store(&runner.header->state, IDLE);
        atomic_fetch_add(&runner.header->done_cases, 1);
        wake(&runner.header->done_cases);
    }
}

/* Maps the launch's file below the program, where filter.h keeps the pages as they are, at an
 * address that no lab can know. */
static void attach(const char *path)
{
    extern char the_record[], __executable_start[]; /* the linker sets them: see RUNNER_LDFLAGS */
    enum { PAGE = 4096 };
    int file = open(path, O_RDWR);
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        perror("getrandom");
        exit(2);
    }
    const uint64_t pages = (uint64_t)(__executable_start - the_record - FILE_BYTES) / PAGE;
    char *base = mmap(the_record + random % pages * PAGE, FILE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
    if (base == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    close(file);
    runner.launch = (Launch *)base;
    runner.header = &runner.launch->rank[runner.rank];
    if (runner.launch->control.debugged) /* gdb is not an ancestor of this process */
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    yield_begin(runner.header);
    runner.run.stream = (Stream){base + LAUNCH_BYTES + (size_t)runner.rank * STREAM_BYTES,
                                 STREAM_BYTES, &runner.header->used};
}

/* MPI_Finalize sends mpirun two short messages over TCP. The second would wait 40 ms for the
 * acknowledgement of the first (Nagle). */
static void send_at_once(void)
{
    enum { DESCRIPTORS = 64 };
    const int yes = 1;
    for (int file = 3; file < DESCRIPTORS; file++) /* fails for all but connections */
        setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* Keeps mpirun, which has no system-call filter, from starting programs for a rank. */
static void end_spawning(void)
{
    prlimit(getppid(), RLIMIT_NPROC, &(struct rlimit){0, 0}, NULL);
}

int main(int argc, char **argv)
{
    language_begin();
    if (argc != 2) {
        Problem problem;
        problem_set(&problem, NULL, "make grade LAB=1", "build/grade starts the runner");
        problem_print(stderr, &problem);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* the judge looks for what a lab printed before it crashed */
    MPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &runner.rank);
    attach(argv[1]);
    guard_signals(runner.launch, runner.rank);
    sanitizer_watch(sanitizer_found);
    send_at_once();
    end_spawning();
    filter_begin(backend_open_all()); /* if the system has no filters, the limits remain */
    recorder_catch_errors();
    backend_set_threads(1);
    run_posted_cases();
    atomic_store(&runner.header->state, GONE);
    MPI_Finalize();
    return 0;
}
