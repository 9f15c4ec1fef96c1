/* Writes a trace: Chrome's JSON (Trace Event Format), with times in microseconds. Each rank is a
 * process with one thread for its steps, one for the passes of micro-batches, one for its spans,
 * and a counter for its memory. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/language.h"
#include "base/replacement.h"
#include "train/trainer.h"
#include "train/trace.h"

enum { STEPS_THREAD, PASSES_THREAD, SPANS_THREAD, TRACE_TAG = 7301 };

static const char *const kind_names[SPAN_KINDS] = {
    "forward", "backward", "tp", "pp", "dp", "dp under way", "optimiser", "reading"};

/* Writes an event on one line. `before` separates it from the previous event. */
static void put(FILE *file, const char *before, json_t *event)
{
    fputs(before, file);
    json_dumpf(event, file, JSON_COMPACT | JSON_REAL_PRECISION(13));
    json_decref(event);
}

static void put_time(FILE *file, int rank, int thread, double begin, double seconds,
                     const char *category, const char *name, json_t *arguments)
{
    put(file, ",\n",
        json_pack("{s:s, s:i, s:i, s:f, s:f, s:s, s:s, s:o*}", "ph", "X", "pid", rank, "tid",
                  thread, "ts", 1e6 * begin, "dur", 1e6 * seconds, "cat", category, "name", name,
                  "args", arguments));
}

static void put_steps(FILE *file, const Trace *t, int rank, int64_t first)
{
    for (int i = 0; i < t->steps; i++) {
        const TracedStep *step = &t->step[i];
        char name[32];
        snprintf(name, sizeof name, "step %" PRId64, first + step->done + 1);
        put_time(file, rank, STEPS_THREAD, step->begin, step->end - step->begin, "step", name,
                 NULL);
    }
}

/* Writes an event for each pass ("F3", "B0"), from its first span to its last. */
static void put_passes(FILE *file, const Trace *t, int rank)
{
    for (int i = 0, end; i < t->spans; i = end) {
        const Span *first = &t->span[i];
        char name[16];
        for (end = i + 1; end < t->spans && t->span[end].micro == first->micro &&
                          t->span[end].backward == first->backward;)
            end++;
        const Span *last = &t->span[end - 1];
        snprintf(name, sizeof name, "%c%d", first->backward ? 'B' : 'F', first->micro);
        if (first->micro != NO_MICRO)
            put_time(file, rank, PASSES_THREAD, first->begin,
                     last->begin + last->seconds - first->begin, "pass", name, NULL);
    }
}

static void put_span(FILE *file, int rank, const Span *span)
{
    const char *kind = kind_names[span->kind];
    if (span->waited > 0)
        put_time(file, rank, SPANS_THREAD, span->begin, span->waited, "waiting", "waiting",
                 json_pack("{s:s}", "for", kind));
    put_time(file, rank, SPANS_THREAD, span->begin + span->waited, span->seconds - span->waited,
             kind, span->what,
             span->sent_tp || span->sent_dp || span->sent_pp
                 ? json_pack("{s:I, s:I, s:I}", "tp_bytes", (json_int_t)span->sent_tp, "dp_bytes",
                             (json_int_t)span->sent_dp, "pp_bytes", (json_int_t)span->sent_pp)
                 : NULL);
    put(file, ",\n",
        json_pack("{s:s, s:i, s:f, s:s, s:{s:I, s:I, s:I, s:I}}", "ph", "C", "pid", rank, "ts",
                  1e6 * (span->begin + span->seconds), "name", "memory", "args", "weights",
                  (json_int_t)span->held[WEIGHTS], "gradients", (json_int_t)span->held[GRADIENTS],
                  "optimiser", (json_int_t)span->held[OPTIMISER], "activations",
                  (json_int_t)span->held[ACTIVATIONS]));
}

/* The members of a group, by their ranks in the world. */
static json_t *members_of(const Mesh *mesh, Group *group)
{
    MPI_Group world, members;
    json_t *ranks = json_array();
    MPI_Comm_group(group_comm(mesh->world), &world);
    MPI_Comm_group(group_comm(group), &members);
    for (int inside = 0, outside; inside < group_size(group); inside++) {
        MPI_Group_translate_ranks(members, 1, &inside, world, &outside);
        json_array_append_new(ranks, json_integer(outside));
    }
    MPI_Group_free(&world);
    MPI_Group_free(&members);
    return ranks;
}

static void put_rank(FILE *file, const Trace *t, int rank)
{
    static const char *const threads[] = {[STEPS_THREAD] = "steps",
                                          [PASSES_THREAD] = "passes of micro-batches",
                                          [SPANS_THREAD] = "work"};
    const Mesh *mesh = t->mesh;
    char name[64];
    snprintf(name, sizeof name, "rank %d (tp %d, dp %d, pp %d)", rank, mesh->tp_rank, mesh->dp_rank,
             mesh->pp_rank);
    put(file, rank ? ",\n" : "\n",
        json_pack("{s:s, s:i, s:s, s:{s:s}}", "ph", "M", "pid", rank, "name", "process_name",
                  "args", "name", name));
    put(file, ",\n",
        json_pack("{s:s, s:i, s:s, s:{s:i}}", "ph", "M", "pid", rank, "name", "process_sort_index",
                  "args", "sort_index", rank));
    for (int thread = 0; thread <= SPANS_THREAD; thread++)
        put(file, ",\n",
            json_pack("{s:s, s:i, s:i, s:s, s:{s:s}}", "ph", "M", "pid", rank, "tid", thread,
                      "name", "thread_name", "args", "name", threads[thread]));
    put(file, ",\n",
        json_pack("{s:s, s:i, s:s, s:{s:i, s:b, s:b, s:o, s:o*, s:o*}}", "ph", "M", "pid", rank,
                  "name", "balise_rank", "args", "rank", rank, "waiting_unknown_tp", t->unlike[0],
                  "waiting_unknown_dp", t->unlike[1], "tp_group",
                  members_of(mesh, mesh_tp_group(mesh)), "dp_group",
                  mesh->dp ? members_of(mesh, mesh->dp) : NULL, "pp_group",
                  mesh->pp ? members_of(mesh, mesh->pp) : NULL));
}

/* This rank's events, separated by commas. */
static char *events_of(const Trace *t, int rank, int64_t first, size_t *size)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, size);
    put_rank(file, t, rank);
    put_steps(file, t, rank, first);
    put_passes(file, t, rank);
    for (int i = 0; i < t->spans; i++)
        put_span(file, rank, &t->span[i]);
    fclose(file);
    return text;
}

/* The number of cores that the ranks share, or null if common/train/launch.sh did not start the
 * ranks. */
static json_t *shared_cores(void)
{
    const char *cores = getenv("BALISE_CORES");
    return cores ? json_integer(atoi(cores)) : json_null();
}

static void put_head(FILE *file, const Trace *t)
{
    const Mesh *mesh = t->mesh;
    const bool device = *backend_device();
    put(file, "{\"displayTimeUnit\":\"ms\",\n\"otherData\":",
        json_pack(
            "{s:s, s:i, s:o, s:i, s:i, s:i, s:i, s:s, s:b, s:s, s:s, s:s}", "written by", "Balise",
            "ranks", group_size(mesh->world), "cores", shared_cores(), "tp", mesh->tp_degree, "dp",
            mesh->dp_degree, "pp", mesh->pp_degree, "steps", t->steps, "kernels",
            backend_description(), "device", device, "clocks",
            "each rank has its own clock, set to 0 as all ranks left a barrier", "times",
            device ? "of the host: queued work counts where the host waits for it, not where it ran"
                   : "of the work itself",
            "waiting",
            "in each exchange, the time beyond that of the fastest rank in the group; it is "
            "drawn first"));
    fputs(",\n\"traceEvents\":[", file);
}

/* Writes the events rank by rank, so rank 0 holds only one other rank's events at a time. */
static void put_all(Replacement *file, const Trace *t, int64_t first)
{
    MPI_Comm world = group_comm(t->mesh->world);
    const int rank = group_rank(t->mesh->world), ranks = group_size(t->mesh->world);
    size_t size = 0;
    char *text = events_of(t, rank, first, &size);
    int length = (int)size;
    if (rank != 0) {
        MPI_Send(&length, 1, MPI_INT, 0, TRACE_TAG, world);
        MPI_Send(text, length, MPI_CHAR, 0, TRACE_TAG, world);
    }
    for (int other = 0; rank == 0 && other < ranks; other++) {
        if (other > 0) {
            MPI_Recv(&length, 1, MPI_INT, other, TRACE_TAG, world, MPI_STATUS_IGNORE);
            text = realloc(text, (size_t)length + 1);
            MPI_Recv(text, length, MPI_CHAR, other, TRACE_TAG, world, MPI_STATUS_IGNORE);
        }
        if (file)
            replacement_put(file, text, (size_t)length);
    }
    free(text);
}

static const OutputKind kind = {.name = N_("a trace"), .mark = "\"written by\":\"Balise\""};
static const char hint[] = N_("TRACE must name a file in an existing, writable folder"),
                  what[] = N_("the trace cannot be written: %s");

bool trace_can_be_written(const char *path, Problem *problem)
{
    Replacement *file = replacement_begin(path, &kind, hint, what, problem);
    if (file)
        replacement_drop(file);
    return file;
}

bool trace_write(const char *path, int64_t first, Problem *problem)
{
    const Trace *t = trace_compared();
    const bool mine = group_rank(t->mesh->world) == 0;
    Replacement *file = mine ? replacement_begin(path, &kind, hint, what, problem) : NULL;
    if (file)
        put_head(file->stream, t);
    put_all(file, t, first);
    if (file)
        fputs("\n]}\n", file->stream);
    return agree(t->mesh->world, !mine || (file && replacement_end(file, hint, what, problem)),
                 problem);
}
