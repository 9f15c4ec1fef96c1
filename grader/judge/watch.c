#include "grader/judge/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "grader/judge/lines.h"

/* Seconds of computing without a call of MPI after which a rank counts as looping: the cases take
 * milliseconds. */
static const double cpu_limit = 10;
/* Where the calls do not prove that nobody can go on (point to point, requests), silence has to last this
 * long. */
static const double silence_limit = 3;
static const double proof_delay = 0.05;

static double wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_of(int pid)
{
    char path[64], line[1024];
    unsigned long user = 0, kernel = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    const char *rest = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (rest)
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel);
    fclose(file);
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static int64_t events_of(const Watch *watch)
{
    int64_t sum = 0;
    for (int r = 0; r < watch->c.world; r++)
        sum += atomic_load(&watch->launch->rank[r].events) + atomic_load(&watch->launch->rank[r].done_cases);
    return sum;
}

static void restart_clock(Watch *watch, int64_t events)
{
    watch->events = events;
    watch->since = wall_now();
    for (int r = 0; r < watch->c.world; r++)
        watch->cpu[r] = -1;
}

Watch watch_begin(const Launch *launch, const Case *c, int posted)
{
    Watch watch = {.launch = launch, .c = *c, .posted = posted};
    restart_clock(&watch, events_of(&watch));
    return watch;
}

static bool left(const Watch *watch, int rank)
{
    return atomic_load(&watch->launch->rank[rank].done_cases) >= watch->posted;
}

static bool in_mpi(const Watch *watch, int rank)
{
    return !left(watch, rank) && atomic_load(&watch->launch->rank[rank].state) == IN_MPI;
}

static bool is_start(const Call *call)
{
    return !strncmp(call->name, "start", 5);
}

/* A collective cannot end while a member is elsewhere for good: it has left the case, or is in another
 * collective. */
static bool waits_in_vain(const Watch *watch, int rank)
{
    const Call *call = &watch->launch->rank[rank].call;
    if (!call->number || is_start(call))
        return false;
    for (int r = 0; r < watch->c.world; r++) {
        const Call *other = &watch->launch->rank[r].call;
        if (!(call->members >> r & 1) || r == rank)
            continue;
        if (left(watch, r) ||
            (in_mpi(watch, r) && (other->members != call->members || other->number != call->number)))
            return true;
    }
    return false;
}

static int append(char *story, size_t size, const char *format, ...)
{
    va_list args;
    size_t used = strlen(story);
    va_start(args, format);
    int length = vsnprintf(story + used, size - used, format, args);
    va_end(args);
    return length;
}

static void append_members(char *story, size_t size, uint64_t members)
{
    append(story, size, "{");
    for (int r = 0, first = 1; r < MAX_RANKS; r++)
        if (members >> r & 1) {
            append(story, size, "%s%d", first ? "" : ",", r);
            first = 0;
        }
    append(story, size, "}");
}

static void append_rank(const Watch *watch, int rank, char *story, size_t size)
{
    const RankHeader *header = &watch->launch->rank[rank];
    const Call *call = &header->call;
    char line[64];
    append(story, size, "%srank %d ", story[0] ? "; " : "", rank);
    if (left(watch, rank)) {
        append(story, size, "has left the case");
    } else if (in_mpi(watch, rank)) {
        append(story, size, "waits in %.23s", call->name);
        if (call->number)
            append(story, size, " #%lld", (long long)call->number);
        if (call->members) {
            append(story, size, " of ");
            append_members(story, size, call->members);
        }
        if (call->peer >= 0 && !call->number)
            append(story, size, " with rank %d", call->peer);
        line_of(call->address, line);
        append(story, size, "%s%s", line[0] ? " at " : "", line);
    } else {
        append(story, size, "computes");
    }
    if (header->where[0])
        append(story, size, " (%.63s)", header->where);
}

static void tell(const Watch *watch, char *story, size_t size)
{
    story[0] = '\0';
    for (int r = 0; r < watch->c.world; r++)
        append_rank(watch, r, story, size);
}

static Ending look_at_blocked(Watch *watch, double silence, char *story, size_t size)
{
    int waiting = 0, in_vain = 0;
    for (int r = 0; r < watch->c.world; r++) {
        if (!left(watch, r) && !in_mpi(watch, r))
            return COMPLETE;
        waiting += in_mpi(watch, r);
        in_vain += in_mpi(watch, r) && waits_in_vain(watch, r);
    }
    bool proven = in_vain == waiting && silence > proof_delay;
    if (waiting == 0 || !(proven || silence > silence_limit) || events_of(watch) != watch->events)
        return COMPLETE;
    tell(watch, story, size);
    return HUNG;
}

static Ending look_at_computing(Watch *watch, double silence, char *story, size_t size)
{
    for (int r = 0; r < watch->c.world && silence > 0.5; r++) {
        if (left(watch, r) || in_mpi(watch, r))
            continue;
        double cpu = cpu_of(watch->launch->rank[r].pid);
        if (watch->cpu[r] < 0)
            watch->cpu[r] = cpu;
        if (cpu - watch->cpu[r] > cpu_limit || silence > 6 * cpu_limit) {
            tell(watch, story, size);
            append(story, size, ". Rank %d did not come back in the time allowed", r);
            return LOOPED;
        }
    }
    return COMPLETE;
}

Ending watch_look(Watch *watch, char *story, size_t size)
{
    int64_t events = events_of(watch);
    if (events != watch->events)
        restart_clock(watch, events);
    double silence = wall_now() - watch->since;
    if (silence < proof_delay)
        return COMPLETE;
    Ending ending = look_at_blocked(watch, silence, story, size);
    return ending == COMPLETE ? look_at_computing(watch, silence, story, size) : ending;
}

void watch_crash(const Watch *watch, char *story, size_t size)
{
    tell(watch, story, size);
    append(story, size, ". The program ended before the check was complete");
}
