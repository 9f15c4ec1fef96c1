/* Launches of a lab's cases, one after the other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/compare/expected.h"
#include "base/clean.h"
#include "grader/judge/launch/processes.h"
#include "grader/judge/launch/watch.h"

static void look_whether_up(Runs *runs, const Watch *watch)
{
    for (int r = 0; r < watch->c.world && runs->up == 0; r++)
        if (atomic_load(&watch->launch->rank[r].state) == STARTING)
            return;
    if (runs->up == 0)
        runs->up = clock_now();
}

static void add_times(Runs *runs)
{
    double now = clock_now(), up = runs->up > 0 ? runs->up : now;
    runs->times.launch += up - runs->begun;
    runs->times.running += now - up;
}

static double slowness(const Sandbox *sandbox)
{
    static const double slower = 8; /* with sanitizers or on a GPU */
    return sandbox->sanitized || sandbox->gpu ? slower : 1;
}

double lab_seconds(const Sandbox *sandbox)
{
    static const double most = 45; /* a lab takes about 1 s, on an overloaded machine several */
    return most * slowness(sandbox);
}

static int32_t done_cases(const Launch *launch, int rank)
{
    return atomic_load(&launch->rank[rank].done_cases);
}

/* Waits until this rank leaves a case, or until it is time to look at the ranks. Also sleeps for a
 * moment, because a lab could wake the judge again and again. */
static void wait_for_rank(const Launch *launch, int rank, int32_t done)
{
    enum { LONGEST = 1000, LEAST = 20 /* µs */ };
    sleep_while(&launch->rank[rank].done_cases, done, LONGEST);
    nap(LEAST);
}

static int hung_cases(const Runs *runs)
{
    int hung = 0;
    for (int i = 0; i < runs->count; i++)
        hung += runs->outcome[i].ending == HUNG;
    return hung;
}

/* Waits for the case that was posted. */
static Ending wait_for_case(Runs *runs, Launcher *launcher, Watch *watch, char *diagnosis,
                            size_t size)
{
    for (;;) {
        look_whether_up(runs, watch);
        int rank = 0;
        int32_t done = 0;
        while (rank < watch->c.world && (done = done_cases(watch->launch, rank)) >= watch->posted)
            rank++;
        if (rank == watch->c.world)
            return COMPLETE;
        if (clock_now() > runs->until) {
            watch_overdue(watch, lab_seconds(runs->sandbox), diagnosis, size);
            if (hung_cases(runs))
                append(diagnosis, size, _("; in %d of these cases, ranks wait forever"),
                       hung_cases(runs));
            return OVERDUE;
        }
        if (launcher_is_too_big(launcher, diagnosis, size))
            return STOPPED;
        if (launcher_has_ended(launcher)) {
            watch_crash(watch, diagnosis, size);
            return CRASHED;
        }
        Ending ending = watch_look(watch, diagnosis, size);
        if (ending != COMPLETE)
            return ending;
        wait_for_rank(watch->launch, rank, done);
    }
}

static void mark_begin(Outcome *outcome, Launch *launch, int world)
{
    for (int r = 0; r < world; r++) {
        outcome->wrote[r].base = (char *)launch + LAUNCH_BYTES + (size_t)r * STREAM_BYTES;
        outcome->wrote[r].begin = atomic_load(&launch->rank[r].used);
    }
}

static void mark_end(Outcome *outcome, const Launch *launch, int world, int posted)
{
    outcome->calls = calls_copy(launch, world, posted);
    for (int r = 0; r < world; r++) {
        int64_t used = atomic_load(&launch->rank[r].used);
        outcome->wrote[r].end = used < STREAM_BYTES ? used : STREAM_BYTES;
    }
}

/* Makes the names and messages of a lab printable. The report quotes them within lines, so they
 * must not contain newlines. Call this only after the ranks have ended, because they can write
 * here. */
static void clean_entries(const Outcome *outcome, int world)
{
    for (int r = 0; r < world; r++)
        for (const Entry *at = NULL; (at = next_entry(outcome->wrote[r], at));) {
            Entry *entry = (Entry *)at;
            entry->label.name[sizeof entry->label.name - 1] = '\0';
            clean_line(entry->label.name);
            Problem *said = (Problem *)problem_of(entry);
            if (!said || (entry->kind != NOTE && entry->kind != REFUSED))
                continue;
            said->what[sizeof said->what - 1] = said->hint[sizeof said->hint - 1] = '\0';
            clean_line(said->what);
            clean_line(said->hint);
        }
}

static bool has_gone(const Launcher *launcher, int rank)
{
    char state = process_state(launcher->pid[rank]).state;
    return state == 0 || state == 'Z';
}

/* Waits until all ranks have left the case, including those that take no part in it. A rank that
 * has not seen the case yet would mistake the next case for this one, and then run it again,
 * alone. */
static void wait_for_all(Launcher *launcher, int ranks, int cases, double until)
{
    for (int r = 0; r < ranks && clock_now() < until && !launcher_has_ended(launcher);) {
        int32_t done = done_cases(launcher->launch, r);
        if (done >= cases || has_gone(launcher, r))
            r++;
        else
            wait_for_rank(launcher->launch, r, done);
    }
}

static void post(Launch *launch, int32_t number)
{
    atomic_store(&launch->control.posted, number);
    wake(&launch->control.posted);
}

/* The first line that a runner's ranks printed, after a colon; or nothing. */
static const char *first_words(const char *runner, char text[240])
{
    char log[LOG_PATH], line[200] = "";
    printed_path(runner, log);
    FILE *file = fopen(log, "r");
    if (file && fgets(line, sizeof line, file))
        line[strcspn(line, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(text, 240, "%s%s", line[0] ? ": " : "", line);
    clean_line(text);
    return text;
}

/* Tries again to start a runner that did not start. Is the lab the reason? It is if a runner
 * without a lab, which make puts beside the others, starts. */
static bool start_again(Runs *runs, Launcher *launcher, char *why, size_t size)
{
    char idle[600], words[256];
    const char *slash = strrchr(runs->runner, '/');
    snprintf(idle, sizeof idle, "%.*sidle", slash ? (int)(slash - runs->runner + 1) : 0,
             runs->runner);
    if (runs->launches > 0 || !launcher->fell || access(idle, X_OK) != 0 ||
        !launcher_start(launcher, runs->sandbox, idle, runs->ranks, words, sizeof words))
        return false;
    launcher_stop(launcher);
    munmap(launcher->launch, FILE_BYTES);
    bool good = launcher_start(launcher, runs->sandbox, runs->runner, runs->ranks, why, size);
    runs->unfit = !good && launcher->fell;
    return good;
}

/* Is there room for another case in the streams of all ranks? A case has at most half of them. */
static bool has_room(const Runs *runs, const Launch *launch)
{
    for (int r = 0; r < runs->ranks; r++)
        if (atomic_load(&launch->rank[r].used) > STREAM_BYTES / 2)
            return false;
    return true;
}

/* Runs cases from runs->next on in one launch, as many as there is room for. */
static bool launch_next(Runs *runs, Problem *problem)
{
    enum { MOST_WAITS = 4 }; /* cases that hang and are recognised only after long waits */
    char why[256], words[240];
    Launcher launcher;
    runs->begun = clock_now();
    runs->up = 0;
    if (!launcher_start(&launcher, runs->sandbox, runs->runner, runs->ranks, why, sizeof why) &&
        !start_again(runs, &launcher, why, sizeof why))
        return runs->unfit
                   ? problem_set(
                         problem, NULL,
                         "leave out what a lab does not need: assembly code (asm), attributes of variables",
                         "the lab's program does not start, although one without a lab does%s",
                         first_words(runs->runner, words))
                   : problem_set(problem, NULL,
                                 "make doctor shows whether MPI starts, also in a sandbox", "%s",
                                 why);
    Launch *launch = runs->launch[runs->launches++] = launcher.launch;
    launch->control.alone = runs->count == 1;
    const Case *cases = runs->cases;
    const int first = runs->next;
    int i = first, failures = 0;
    for (; i < runs->count && failures == 0 && (i == first || has_room(runs, launch)); i++) {
        Outcome *outcome = &runs->outcome[i];
        wait_for_all(&launcher, runs->ranks, i - first, runs->until);
        mark_begin(outcome, launch, cases[i].world);
        launch->control.current = cases[i];
        const double begun = clock_now();
        post(launch, i - first + 1);
        Watch watch = watch_begin(launch, launcher.pid, &cases[i], i - first + 1, runs->cpu_limit,
                                  slowness(runs->sandbox));
        outcome->ending =
            wait_for_case(runs, &launcher, &watch, outcome->diagnosis, sizeof outcome->diagnosis);
        outcome->seconds = clock_now() - begun;
        failures += outcome->ending != COMPLETE;
        runs->long_waits += watch.waited_long;
        if (outcome->ending == LOOPED || outcome->ending == OVERDUE ||
            runs->long_waits == MOST_WAITS)
            runs->cut_short = outcome->ending;
        if (failures)
            launcher_stop(&launcher);
        mark_end(outcome, launch, cases[i].world, i - first + 1);
    }
    if (!failures) {
        post(launch, -1);
        launcher_wait(&launcher, 1);
        launcher_stop(&launcher);
    }
    for (int k = first; k < i; k++)
        clean_entries(&runs->outcome[k], cases[k].world);
    add_times(runs);
    runs->next = runs->cut_short == COMPLETE ? i : runs->count;
    return true;
}

/* ---- was the runner built with the same protocol as the judge? */

static const char hint[] =
    N_("make grade builds the runner and the judge from one version; make -B grade rebuilds both");

bool stamp_fits(const char *runner, Problem *problem)
{
    struct stat status;
    const char *bytes = MAP_FAILED;
    int file = open(runner, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return problem_set(problem, runner, hint, "there is no runner: %s", strerror(errno));
    size_t size = fstat(file, &status) == 0 ? (size_t)status.st_size : 0;
    if (size > 0)
        bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (bytes == MAP_FAILED)
        return problem_set(problem, runner, hint, "the runner cannot be read");
    bool fits = memmem(bytes, size, protocol_stamp, strlen(protocol_stamp) + 1) != NULL;
    munmap((void *)bytes, size);
    return fits || problem_set(problem, runner, hint,
                               "the runner and the judge were built with different protocols");
}

Runs *runs_prepare(const char *runner, int ranks, const Case *cases, int count, double cpu_limit,
                   double until, Sandbox *sandbox)
{
    Runs *runs = calloc(1, sizeof *runs);
    runs->runner = runner;
    runs->ranks = ranks;
    runs->cases = cases;
    runs->count = count;
    runs->cpu_limit = cpu_limit;
    runs->until = until;
    runs->sandbox = sandbox;
    for (int i = 0; i < count; i++)
        runs->outcome[i].ending = NOT_RUN;
    return runs;
}

bool run_cases(Runs *runs, Problem *problem)
{
    expect_ranks();
    return (runs->launches || stamp_fits(runs->runner, problem)) && launch_next(runs, problem);
}

void outcome_forget(Outcome *outcome)
{
    calls_free(outcome->calls);
    *outcome = (Outcome){.ending = OVERDUE};
}

void runs_free(Runs *runs)
{
    for (int i = 0; i < runs->count; i++)
        calls_free(runs->outcome[i].calls);
    for (int i = 0; i < runs->launches; i++)
        munmap(runs->launch[i], FILE_BYTES);
    free(runs);
}
