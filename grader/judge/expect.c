#include "grader/judge/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/reference/rounding.h"
#include "base/run.h"
#include "grader/judge/plays.h"
#include "grader/plays/work.h"
#include "grader/judge/suspects.h"

/* The plain layers make no mistakes: a word that ends the judge's own play is a defect of the kit. */
_Noreturn void run_ends(Problem *problem, void *address)
{
    problem_print(stderr, problem);
    fprintf(stderr, "  this is a defect of the grader, not of your lab\n");
    exit(2);
}

void run_noted(Problem *problem, void *address)
{
    run_ends(problem, address);
}

_Noreturn void run_todo(int balise, const char *function, void *address)
{
    Problem problem;
    problem_set(&problem, NULL, "report it", "the judge reached balise %d in %s", balise, function);
    run_ends(&problem, address);
}

void at(Play *play, const char *format, ...)
{
}

void traffic_begin(Play *play)
{
}

/* numbers: what may be sent for a table split by columns, calls, what may be sent for one split by rows. */
void traffic_end(Play *play, const char *name, Budget budget, const Sizes *sizes)
{
    const Lab *lab = lab_of(play->c.lab);
    Sizes by_rows = *sizes;
    double *numbers;
    by_rows.vocabulary = 1;
    stream_entry(&play->stream, TRAFFIC, COMMUNICATION, name, 3, &numbers);
    /* Lab 11 exchanges over the replicas, all others over the ranks that split a model; all groups together are charged. */
    int replicas = replicas_of(&play->c), n = lab->number == 11 ? replicas : play->c.tp,
        groups = play->c.world / n;
    numbers[0] = (double)(groups * lab->elements[budget](n, sizes));
    numbers[1] = (double)lab->calls[budget](n, sizes);
    numbers[2] = (double)(groups * lab->elements[budget](n, &by_rows));
}

void own_work_begin(void)
{
}

OwnWork own_work(void)
{
    return (OwnWork){0};
}

static void play_serially(const Case *c, Stream stream)
{
    Mesh mesh = {.tp_degree = 1, .dp_degree = 1};
    Play play = {.c = *c, .mesh = &mesh, .stream = stream};
    play.pool = pool_new(0, true);
    play.tape = tape_new(play.pool, &mesh);
    for (int i = 0; i < 64; i++)
        play.samples[i] = random_below(&play, "sample", i, 1 << 20);
    play_of_case(c)(&play);
    tape_free(play.tape);
    model_free(play.model);
    pool_free(play.pool);
}

static void play_expected(const Case *c, int rank, int suspect, Stream stream)
{
    suspect_begin(suspect, c);
    if (play_of_case(c))
        play_serially(c, stream);
    else
        expectation_of_case(c)(c, rank, suspect, stream);
    suspect_end();
}

/* What two processes write. */
static void *shared_memory(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Rooms of streams that are no longer needed: their pages are there already. */
static struct {
    char *base[2 * (1 + MAX_ROUNDED)];
    int count;
} spare;

static char *room_of_stream(void)
{
    return spare.count > 0 ? spare.base[--spare.count] : shared_memory(STREAM_BYTES);
}

static void keep_room(char *base)
{
    if (spare.count < (int)(sizeof spare.base / sizeof *spare.base))
        spare.base[spare.count++] = base;
    else
        munmap(base, STREAM_BYTES);
}

typedef _Atomic int64_t Used[1 + MAX_ROUNDED];

/* Every second run, from `first` on: the exact one, then those in emulated single precision. */
static void play_runs(const Case *c, int rank, int suspect, const Expected *expected, Used *used, int first,
                      int step)
{
    for (int i = first; i <= expected->rounded; i += step) {
        (*used)[i] = 0;
        reference_round_like_fp32(i == 0 ? 0 : c->key + (uint64_t)i);
        play_expected(c, rank, suspect, (Stream){expected->base[i], STREAM_BYTES, &(*used)[i]});
        reference_round_like_fp32(0);
    }
}

/* The ranks have ended: a second core is free for half of the runs. */
Expected expect(const Case *c, int rank, int suspect, int rounded)
{
    static Used *used;
    int status = -1;
    Expected expected = {.rounded = rounded};
    if (!used)
        used = shared_memory(sizeof *used);
    for (int i = 0; i <= rounded; i++)
        expected.base[i] = room_of_stream();
    pid_t helper = rounded > 0 ? fork() : -1;
    if (helper == 0) {
        play_runs(c, rank, suspect, &expected, used, 1, 2);
        _exit(0);
    }
    play_runs(c, rank, suspect, &expected, used, 0, 2);
    if (helper < 0 || waitpid(helper, &status, 0) != helper || status != 0)
        play_runs(c, rank, suspect, &expected, used, 1, 2);
    for (int i = 0; i <= rounded; i++)
        expected.used[i] = (*used)[i];
    return expected;
}

void expected_free(Expected *expected)
{
    for (int i = 0; i <= expected->rounded; i++)
        keep_room(expected->base[i]);
}

/* A rank may write anything: the product of the sizes must not overflow. */
static bool is_shape(Shape shape)
{
    int64_t count = 1;
    if (shape.rank < 0 || shape.rank > 4)
        return false;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.size[i] < 0 || shape.size[i] > STREAM_BYTES || count > STREAM_BYTES)
            return false;
        count *= shape.size[i];
    }
    return true;
}

const Entry *next_entry(const char *base, int64_t used, int64_t *offset)
{
    int64_t left = used - *offset;
    if (*offset < 0 || *offset % (int64_t)sizeof(double) || left < (int64_t)sizeof(Entry))
        return NULL;
    const Entry *entry = (const Entry *)(base + *offset);
    int64_t room = (left - (int64_t)sizeof(Entry)) / (int64_t)sizeof(double);
    if (entry->count < 0 || entry->count > room || !is_shape(entry->shape))
        return NULL;
    *offset += (int64_t)sizeof(Entry) + entry->count * (int64_t)sizeof(double);
    return entry;
}

const Entry *find_entry(const char *base, int64_t used, int kind, const char *name, int64_t *offset)
{
    const Entry *entry;
    while ((entry = next_entry(base, used, offset)))
        if (entry->kind == kind && !strncmp(entry->name, name, NAME_SIZE))
            return entry;
    return NULL;
}
