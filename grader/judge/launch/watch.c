/* Are the ranks of a case blocked, does one loop forever, how did one end? */
#include "grader/judge/compare/expected.h"
#include "grader/judge/launch/watch.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/labs/labels.h"
#include "grader/judge/launch/processes.h"

/* A rank that waits in MPI polls again and again. If all ranks wait, and each has polled this many
 * times without an event anywhere, nothing will arrive. On a busy machine it only takes longer to
 * find that out. How many polls suffice depends on the calls. If nothing that can still arrive
 * would help any rank, the calls alone prove a hang, without any polls. If everything that some
 * rank waits for is there, MPI is working, and only a defect could stop it. That may take long: a
 * new communicator takes many messages, and each may have to wait until its ranks get a core. */
static const int64_t enough_looks[] = {
    [NONE_LEFT] = -1, [UNLIKELY] = 500, [SOME] = 5000, [ALL_THERE] = 100000};
/* A rank that neither computes nor polls is asleep, or waits for something other than a rank. It
 * has slept too long if sleeps_per_cpu times the limit on computing has passed, in wall-clock
 * seconds, and LOOKS_ASLEEP consecutive looks found it asleep. */
static const double sleeps_per_cpu = 5;
enum { LOOKS_ASLEEP = 100 };
static const double floor_of_limit = 2, plain_layers = 100;
static const double first_look = 0.05;
static const double long_silence = 2;  /* seconds until a person may wonder what is going on */
static const double look_delay = 0.02; /* a look reads /proc, which must not slow down the ranks */

/* A hundred times the time that the judge's own plain layers take on this machine for the whole
 * case, with plain loops in double precision, plus two seconds. Their inputs are not the case's. */
static double watch_cpu_limit(const Case *c)
{
    Case other = *c;
    other.key ^= 0x5eed; /* the case's expected values must not exist while a runner lives */
    clock_t begin = clock();
    Expected expected = expect(&other, 0, THE_NUMBERS, 0);
    expected_free(&expected);
    return floor_of_limit + plain_layers * (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* The CPU seconds that a rank may compute. */
static double most_seconds(Watch *watch)
{
    if (watch->cpu_limit <= 0 && watch->derived == 0)
        watch->derived = watch_cpu_limit(&watch->c);
    return (watch->cpu_limit > 0 ? watch->cpu_limit : watch->derived) * watch->patience;
}

/* Has a rank computed for too long? */
static bool is_too_long(Watch *watch, double cpu)
{
    double least = (watch->cpu_limit > 0 ? watch->cpu_limit : floor_of_limit) * watch->patience;
    return cpu > least && cpu > most_seconds(watch);
}

/* Has a rank slept all the time, for long? */
static bool sleeps(const Watch *watch, int rank, double silence)
{
    double limit = watch->cpu_limit > 0 ? watch->cpu_limit : floor_of_limit;
    return silence > sleeps_per_cpu * limit * watch->patience &&
           watch->asleep[rank] >= LOOKS_ASLEEP;
}

static int64_t events_of(const Watch *watch)
{
    int64_t sum = 0;
    for (int r = 0; r < watch->c.world; r++)
        sum += atomic_load(&watch->launch->rank[r].events) +
               atomic_load(&watch->launch->rank[r].done_cases);
    return sum;
}

static void restart_clock(Watch *watch, int64_t events)
{
    watch->events = events;
    watch->since = clock_now();
    for (int r = 0; r < watch->c.world; r++) {
        watch->cpu[r] = -1;
        watch->asleep[r] = 0;
        watch->asked[r] = watch->asked_last[r] = atomic_load(&watch->launch->rank[r].asked);
    }
}

Watch watch_begin(const Launch *launch, const int *pid, const Case *c, int posted, double cpu_limit,
                  double patience)
{
    Watch watch = {.launch = launch,
                   .pid = pid,
                   .c = *c,
                   .posted = posted,
                   .cpu_limit = cpu_limit,
                   .patience = patience};
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

/* ---- the diagnosis ------------------------------------------------------------------------------------------------------ */

/* Appends what the rank is doing, as its header says. */
static void append_place(const RankHeader *header, char *diagnosis, size_t size)
{
    char words[LABEL_SIZE];
    const Label place = header->where;
    append(diagnosis, size, " (%s)", label_text(&place, words));
}

static void append_rank(const Watch *watch, const Calls *calls, int rank, char *diagnosis,
                        size_t size)
{
    const RankHeader *header = &watch->launch->rank[rank];
    if (diagnosis[0])
        append(diagnosis, size, "%s", _("; "));
    if (calls->rank[rank].left) {
        append(diagnosis, size, _("rank %d has left the case"), rank);
    } else if (call_of_rank(calls, rank)) {
        append(diagnosis, size, _("rank %d "), rank);
        append_waiting(calls, rank, diagnosis, size);
    } else {
        append(diagnosis, size, _("rank %d computes"), rank);
    }
    if (header->where.of != NOTHING)
        append_place(header, diagnosis, size);
}

/* @param ended whether no rank will make another call */
static void tell(const Watch *watch, const Calls *calls, bool ended, char *diagnosis, size_t size)
{
    char text[1200];
    diagnosis[0] = '\0';
    for (int r = 0; r < watch->c.world; r++)
        append_rank(watch, calls, r, diagnosis, size);
    Difference first = first_difference(calls, ended, false);
    if (difference_text(calls, &first, text, sizeof text))
        append(diagnosis, size, _("\nfirst difference: %s"), text);
}

static void tell_now(const Watch *watch, bool ended, char *diagnosis, size_t size)
{
    Calls *calls = calls_copy(watch->launch, watch->c.world, watch->posted);
    tell(watch, calls, ended, diagnosis, size);
    calls_free(calls);
}

/* ---- looking -------------------------------------------------------------------------------------------------------- */

/* CPU seconds that a rank has used since the last event, approximately. */
static double cpu_since(Watch *watch, int rank, const ProcessState *process)
{
    if (watch->cpu[rank] < 0) {
        watch->cpu[rank] = process->cpu;
        watch->resident[rank] = process->resident;
    }
    return process->cpu - watch->cpu[rank];
}

/* Has the rank's memory grown since the last event? Then it has more time: if it never stops
 * allocating, it reaches the memory limit, whose message names the rank. */
static bool takes_memory(const Watch *watch, int rank, const ProcessState *process)
{
    enum { MORE = 4 << 20 };
    return process->resident >= watch->resident[rank] + MORE;
}

/* Counts the consecutive looks that found the rank asleep. A rank that waits in MPI sleeps between
 * two polls too, but continues to poll. */
static void count_sleep(Watch *watch, int rank, char state)
{
    int64_t asked = atomic_load(&watch->launch->rank[rank].asked);
    watch->asleep[rank] =
        state == 'S' && asked == watch->asked_last[rank] ? watch->asleep[rank] + 1 : 0;
    watch->asked_last[rank] = asked;
}

/* Every rank waits in MPI or has left, and each waiting rank has polled at least `least` times. */
static Ending blocked(Watch *watch, int64_t least, bool asleep, char *diagnosis, size_t size)
{
    Ending ending = COMPLETE;
    Calls *calls = calls_copy(watch->launch, watch->c.world, watch->posted);
    const Outlook outlook = outlook_of(calls);
    if (events_of(watch) == watch->events && (asleep || least > enough_looks[outlook])) {
        tell(watch, calls, true, diagnosis, size);
        watch->waited_long = outlook > UNLIKELY;
        ending = HUNG;
    }
    calls_free(calls);
    return ending;
}

static Ending look_at_blocked(Watch *watch, double silence, char *diagnosis, size_t size)
{
    int waiting = 0, asleep = 0;
    int64_t least = INT64_MAX;
    for (int r = 0; r < watch->c.world; r++) {
        if (!left(watch, r) && !in_mpi(watch, r))
            return COMPLETE;
        if (!in_mpi(watch, r))
            continue;
        count_sleep(watch, r, process_state(watch->pid[r]).state);
        int64_t asked = watch->asked_last[r] - watch->asked[r];
        least = asked < least ? asked : least;
        asleep += sleeps(watch, r, silence);
        waiting++;
    }
    if (waiting == 0)
        return COMPLETE;
    return blocked(watch, least, asleep == waiting, diagnosis, size);
}

/* Asks a computing rank where in the lab it is, and appends its answer, if one comes. */
static void append_where(const Watch *watch, int rank, char *diagnosis, size_t size)
{
    const RankHeader *header = &watch->launch->rank[rank];
    int looks = kill(watch->pid[rank], SIGUSR1) == 0 ? 200 : 0;
    while (looks-- > 0 && !atomic_load(&header->answered))
        nap(1000);
    const char *line = atomic_load(&header->answered) ? line_of(header->signal_address) : "";
    if (line[0])
        append(diagnosis, size, _(": it is at %s"), line);
}

/* Explains on a terminal why nothing happens, but only once, because later cases may be just as
 * slow. */
static void tell_what_lasts(Watch *watch, int rank, double silence)
{
    static bool told;
    if (told || silence < long_silence || !isatty(STDERR_FILENO))
        return;
    told = true;
    fprintf(stderr,
            _("waiting for rank %d, which has made no MPI call for %.0f s; in a case it may "
              "compute for %.0f s\n"),
            rank, silence, most_seconds(watch));
}

static Ending look_at_computing(Watch *watch, double silence, char *diagnosis, size_t size)
{
    for (int r = 0; r < watch->c.world; r++) {
        if (left(watch, r) || in_mpi(watch, r))
            continue;
        ProcessState process = process_state(watch->pid[r]);
        if (process.state == 0 || process.state == 'Z') {
            watch_crash(watch, diagnosis, size);
            return CRASHED;
        }
        count_sleep(watch, r, process.state);
        const double cpu = cpu_since(watch, r, &process),
                     patience = takes_memory(watch, r, &process) ? 3 : 1;
        if (!is_too_long(watch, cpu / patience) && !sleeps(watch, r, silence)) {
            tell_what_lasts(watch, r, silence);
            continue;
        }
        tell_now(watch, false, diagnosis, size);
        append(diagnosis, size, _(". Rank %d did not return within the time limit"), r);
        append_where(watch, r, diagnosis, size);
        return LOOPED;
    }
    return COMPLETE;
}

Ending watch_look(Watch *watch, char *diagnosis, size_t size)
{
    int64_t events = events_of(watch);
    if (events != watch->events)
        restart_clock(watch, events);
    double now = clock_now(), silence = now - watch->since;
    if (silence < first_look || now - watch->looked < look_delay)
        return COMPLETE;
    watch->looked = now;
    Ending ending = look_at_blocked(watch, silence, diagnosis, size);
    return ending == COMPLETE ? look_at_computing(watch, silence, diagnosis, size) : ending;
}

void watch_overdue(const Watch *watch, double seconds, char *diagnosis, size_t size)
{
    tell_now(watch, false, diagnosis, size);
    for (int r = 0; r < watch->c.world; r++)
        if (process_state(watch->pid[r]).state == 'T')
            append(diagnosis, size, _("; a signal has stopped rank %d"), r);
    append(diagnosis, size,
           _(". A lab takes about a second, and the cases of this one have taken more than %.0f "
             "seconds"),
           seconds);
}

void watch_crash(const Watch *watch, char *diagnosis, size_t size)
{
    diagnosis[0] = '\0';
    for (int r = 0; r < watch->c.world; r++) {
        const RankHeader *header = &watch->launch->rank[r];
        int number = atomic_load(&header->signal);
        const char *name = sigdescr_np(number);
        if (!number)
            continue;
        const char *line = line_of(header->signal_address);
        append(diagnosis, size, _("rank %d was killed by signal %d (%s)"), r, number,
               name ? name : "?");
        if (line[0])
            append(diagnosis, size, _(" at %s"), line);
        append_place(header, diagnosis, size);
        if (!line[0] || number == SIGABRT) /* an abort is not at the line of the mistake */
            append(diagnosis, size, _("; make grade LAB=%d SAN=1 may name the line"), watch->c.lab);
        return;
    }
    tell_now(watch, true, diagnosis, size);
    append(diagnosis, size, "%s", _(". The program ended before the check was complete"));
}
