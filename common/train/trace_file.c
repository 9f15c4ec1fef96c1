/* The file of a trace: Chrome's JSON (Trace Event Format), times in microseconds. A rank is a process, with a thread for its steps and one
 * for its spans, and a counter for its memory. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/backend.h"
#include "comm/comm.h"
#include "train/agree.h"
#include "train/trace_parts.h"

enum { STEPS_THREAD, SPANS_THREAD, TRACE_TAG = 7301 };

static const char *const kind_names[SPAN_KINDS] = {"forward",      "backward",  "tp",     "dp",
                                                   "dp under way", "optimiser", "reading"};

/* A name of an operation is the program's own text; what JSON could not hold in it is left out. */
static void put_name(FILE *file, const char *name)
{
    putc('"', file);
    for (; *name; name++)
        if ((unsigned char)*name >= 0x20 && *name != '"' && *name != '\\')
            putc(*name, file);
    putc('"', file);
}

static void put_time(FILE *file, int rank, int thread, double begin, double seconds)
{
    fprintf(file, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", rank, thread,
            1e6 * begin, 1e6 * seconds);
}

static void put_steps(FILE *file, const Trace *t, int rank, int64_t first)
{
    for (int i = 0; i < t->steps; i++) {
        const TracedStep *step = &t->step[i];
        put_time(file, rank, STEPS_THREAD, step->begin, step->end - step->begin);
        fprintf(file, ",\"cat\":\"step\",\"name\":\"step %" PRId64 "\"}", first + step->done + 1);
    }
}

static void put_span(FILE *file, int rank, const Span *span)
{
    if (span->waited > 0) {
        put_time(file, rank, SPANS_THREAD, span->begin, span->waited);
        fprintf(file, ",\"cat\":\"waiting\",\"name\":\"waiting\",\"args\":{\"for\":\"%s\"}}",
                kind_names[span->kind]);
    }
    put_time(file, rank, SPANS_THREAD, span->begin + span->waited, span->seconds - span->waited);
    fprintf(file, ",\"cat\":\"%s\",\"name\":", kind_names[span->kind]);
    put_name(file, span->what);
    if (span->sent_tp || span->sent_dp)
        fprintf(file, ",\"args\":{\"tp_bytes\":%lld,\"dp_bytes\":%lld}", (long long)span->sent_tp,
                (long long)span->sent_dp);
    putc('}', file);
}

static void put_memory(FILE *file, int rank, double time, const int64_t held[CATEGORIES])
{
    fprintf(file,
            ",\n{\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"name\":\"memory\",\"args\":{\"weights\":%lld,"
            "\"gradients\":%lld,\"optimiser\":%lld,"
            "\"activations\":%lld}}",
            rank, 1e6 * time, (long long)held[WEIGHTS], (long long)held[GRADIENTS],
            (long long)held[OPTIMISER], (long long)held[ACTIVATIONS]);
}

/* Ranks of the world. */
static void put_members(FILE *file, const char *name, const Mesh *mesh, Group *group)
{
    MPI_Group world, members;
    const int count = group_size(group);
    int *inside = malloc((size_t)count * sizeof *inside), *outside = malloc((size_t)count * sizeof *outside);
    for (int i = 0; i < count; i++)
        inside[i] = i;
    MPI_Comm_group(group_comm(mesh->world), &world);
    MPI_Comm_group(group_comm(group), &members);
    MPI_Group_translate_ranks(members, count, inside, world, outside);
    MPI_Group_free(&world);
    MPI_Group_free(&members);
    fprintf(file, ",\"%s\":[", name);
    for (int i = 0; i < count; i++)
        fprintf(file, "%s%d", i ? "," : "", outside[i]);
    putc(']', file);
    free(inside);
    free(outside);
}

static void put_rank(FILE *file, const Trace *t, int rank)
{
    const Mesh *mesh = t->mesh;
    fprintf(file,
            "%s\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"rank %d (tp %d, dp "
            "%d)\"}}",
            rank ? "," : "", rank, rank, mesh->tp_rank, mesh->dp_rank);
    fprintf(file, ",\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}}",
            rank, rank);
    fprintf(file,
            ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"steps\"}}",
            rank, STEPS_THREAD);
    fprintf(file,
            ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"work\"}}",
            rank, SPANS_THREAD);
    fprintf(file,
            ",\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"balise_rank\",\"args\":{\"rank\":%d,\"waiting_unknown_"
            "tp\":%s,\"waiting_unknown_dp\":%s",
            rank, rank, t->unlike[0] ? "true" : "false", t->unlike[1] ? "true" : "false");
    put_members(file, "tp_group", mesh, mesh->tp ? mesh->tp : mesh->world);
    if (mesh->dp)
        put_members(file, "dp_group", mesh, mesh->dp);
    fputs("}}", file);
}

/* The events of this rank, separated by commas. */
static char *events_of(const Trace *t, int rank, int64_t first, size_t *size)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, size);
    put_rank(file, t, rank);
    put_steps(file, t, rank, first);
    for (int i = 0; i < t->spans; i++) {
        const Span *span = &t->span[i];
        put_span(file, rank, span);
        put_memory(file, rank, span->begin + span->seconds, span->held);
    }
    fclose(file);
    return text;
}

static void put_head(FILE *file, const Trace *t)
{
    const Mesh *mesh = t->mesh;
    fprintf(file,
            "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"written "
            "by\":\"Balise\",\"ranks\":%d,\"tp\":%d,\"dp\":%d,\"steps\":%d,\"kernels\":",
            group_size(mesh->world), mesh->tp_degree, mesh->dp_degree, t->steps);
    put_name(file, backend_description());
    fprintf(
        file,
        ",\"device\":%s,\n\"clocks\":\"each rank has a clock of its own, set to 0 as it left one barrier\",\n"
        "\"times\":\"%s\",\n"
        "\"waiting\":\"of each exchange, what a rank spent on it above the least that a rank of the group "
        "did; it is drawn first\"},\n"
        "\"traceEvents\":[",
        *backend_device() ? "true" : "false",
        *backend_device() ? "of the host: what is queued for the device counts where the host waits for it, "
                            "and not where it was computed"
                          : "of the work itself");
}

/* Rank by rank, so that rank 0 holds one other's events at a time. */
static bool put_all(FILE *file, const Trace *t, int64_t first)
{
    MPI_Comm world = group_comm(t->mesh->world);
    const int rank = group_rank(t->mesh->world), ranks = group_size(t->mesh->world);
    size_t size = 0;
    char *text = events_of(t, rank, first, &size);
    int length = (int)size;
    bool good = true;
    if (rank != 0) {
        MPI_Send(&length, 1, MPI_INT, 0, TRACE_TAG, world);
        MPI_Send(text, length, MPI_CHAR, 0, TRACE_TAG, world);
        free(text);
        return true;
    }
    for (int other = 0; other < ranks; other++) {
        if (other > 0) {
            MPI_Recv(&length, 1, MPI_INT, other, TRACE_TAG, world, MPI_STATUS_IGNORE);
            text = realloc(text, (size_t)length + 1);
            MPI_Recv(text, length, MPI_CHAR, other, TRACE_TAG, world, MPI_STATUS_IGNORE);
        }
        good = good && file && fwrite(text, 1, (size_t)length, file) == (size_t)length;
    }
    free(text);
    return good;
}

static bool refuse(const char *path, int error, Problem *problem)
{
    return problem_set(problem, path, "TRACE names a file in a folder that exists and can be written",
                       "the trace cannot be written: %s", strerror(error));
}

static char *beside(const char *path)
{
    char *name = NULL;
    return asprintf(&name, "%s.new", path) < 0 ? NULL : name;
}

bool trace_can_be_written(const char *path, Problem *problem)
{
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) /* a rename would put a file where a device was */
        return problem_set(problem, path, "TRACE names a file: TRACE=run.json",
                           "the trace cannot be written: that is no ordinary file");
    char *name = beside(path);
    FILE *file = name ? fopen(name, "a") : NULL;
    const int error = errno;
    if (file) {
        fclose(file);
        unlink(name);
    }
    free(name);
    return file || refuse(path, error, problem);
}

bool trace_file_write(const Trace *t, const char *path, int64_t first, Problem *problem)
{
    const bool mine = group_rank(t->mesh->world) == 0;
    char *name = mine ? beside(path) : NULL;
    FILE *file = name ? fopen(name, "w") : NULL;
    if (file)
        put_head(file, t);
    bool good = put_all(file, t, first);
    if (mine) {
        good = good && fputs("\n]}\n", file) != EOF;
        good = (file && fclose(file) == 0) && good && rename(name, path) == 0;
        if (!good) {
            refuse(path, errno, problem);
            if (name)
                unlink(name);
        }
    }
    free(name);
    return agree(t->mesh->world, good, problem);
}
