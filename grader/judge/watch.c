#include "grader/judge/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "grader/judge/lines.h"
#include "grader/judge/processes.h"

/* A rank that waits in MPI asks again and again, and burns CPU time by that. When all ranks wait and each has asked for this
 * long without an event anywhere, in seconds of CPU time, nothing will come: on a busy machine it only takes longer to know.
 * (Which calls they are in proves less: a rank may have left a collective that another one is still leaving.) */
static const double asked_long_enough = 0.1;
/* Making a communicator takes many messages without an event, each of which may meet ranks that have no core just now. */
static const double asked_long_enough_in_set_up = 0.5;
/* A rank that neither computes nor waits in MPI sleeps, or waits for something that is no rank: that many times the limit on
 * computing, in seconds of the clock. */
static const double sleeps_per_cpu = 5;
static const double first_look = 0.05;
static const double look_delay = 0.02; /* a look reads /proc: seldom, so as not to slow down the ranks */

static double wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double watch_cpu_limit(const Case *c)
{
    double rows = (double)c->B * c->S, passes = 24;
    double products =
        c->lab == 1 || c->lab >= 8 ? rows * c->H * c->world : rows * c->H * (4.0 * c->H + c->F + c->out);
    return 2 + 100 * 1e-9 * passes * products;
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

Watch watch_begin(const Launch *launch, const Case *c, int posted, double cpu_limit)
{
    Watch watch = {.launch = launch, .c = *c, .posted = posted, .cpu_limit = cpu_limit};
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

/* CPU seconds that a rank has used since the last event, or nearly. */
static double cpu_since(Watch *watch, int rank, const ProcessState *process)
{
    if (watch->cpu[rank] < 0)
        watch->cpu[rank] = process->cpu;
    return process->cpu - watch->cpu[rank];
}

static double patience(const Call *call)
{
    static const char *const set_up[] = {"dup", "split", "create", "free"};
    for (size_t i = 0; i < sizeof set_up / sizeof *set_up; i++)
        if (!strncmp(call->name, set_up[i], sizeof call->name))
            return asked_long_enough_in_set_up;
    return asked_long_enough;
}

static Ending look_at_blocked(Watch *watch, double silence, char *story, size_t size)
{
    int waiting = 0, asked = 0;
    for (int r = 0; r < watch->c.world; r++) {
        if (!left(watch, r) && !in_mpi(watch, r))
            return COMPLETE;
        if (!in_mpi(watch, r))
            continue;
        ProcessState process = process_state(watch->launch->rank[r].pid);
        waiting++;
        asked += cpu_since(watch, r, &process) > patience(&watch->launch->rank[r].call) ||
                 (silence > sleeps_per_cpu * watch->cpu_limit && process.state == 'S');
    }
    if (waiting == 0 || asked < waiting || events_of(watch) != watch->events)
        return COMPLETE;
    tell(watch, story, size);
    return HUNG;
}

static Ending look_at_computing(Watch *watch, double silence, char *story, size_t size)
{
    for (int r = 0; r < watch->c.world; r++) {
        if (left(watch, r) || in_mpi(watch, r))
            continue;
        ProcessState process = process_state(watch->launch->rank[r].pid);
        if (process.state == 0 || process.state == 'Z') {
            watch_crash(watch, story, size);
            return CRASHED;
        }
        bool computes = cpu_since(watch, r, &process) > watch->cpu_limit,
             sleeps = silence > sleeps_per_cpu * watch->cpu_limit && process.state == 'S';
        if (computes || sleeps) {
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
    double now = wall_now(), silence = now - watch->since;
    if (silence < first_look || now - watch->looked < look_delay)
        return COMPLETE;
    watch->looked = now;
    Ending ending = look_at_blocked(watch, silence, story, size);
    return ending == COMPLETE ? look_at_computing(watch, silence, story, size) : ending;
}

void watch_crash(const Watch *watch, char *story, size_t size)
{
    story[0] = '\0';
    for (int r = 0; r < watch->c.world; r++) {
        const RankHeader *header = &watch->launch->rank[r];
        int number = atomic_load(&header->signal);
        const char *name = sigdescr_np(number);
        char line[64];
        if (!number)
            continue;
        line_of(header->signal_address, line);
        append(story, size, "rank %d was stopped by signal %d (%s)%s%s (%.63s)", r, number, name ? name : "?",
               line[0] ? " at " : "", line, header->where);
        return;
    }
    tell(watch, story, size);
    append(story, size, ". The program ended before the check was complete");
}
