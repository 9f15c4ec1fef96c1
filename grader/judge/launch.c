#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "grader/judge/judge.h"
#include "grader/judge/watch.h"

enum { MAX_LAUNCHES = 2 * MAX_CASES };

static const size_t file_bytes = LAUNCH_BYTES + (size_t)MAX_RANKS * STREAM_BYTES;

struct Runs {
    int count;
    Outcome outcome[MAX_CASES];
    Launch *launch[MAX_LAUNCHES];
    int launches;
    double cpu_limit; /* 0: derived from the case */
    bool looped;      /* a rank has computed for ever: the next ones are waited for less long */
};

typedef struct Process {
    pid_t pid;
    bool ended;
    int status;
} Process;

static void nap(long microseconds)
{
    nanosleep(&(struct timespec){0, microseconds * 1000}, NULL);
}

/* In shared memory, by a name that is gone as soon as the ranks have opened it. */
static Launch *make_file(char path[64], Problem *problem)
{
    snprintf(path, 64, "/dev/shm/balise.%d.XXXXXX", (int)getpid());
    int file = mkstemp(path);
    if (file < 0 || ftruncate(file, (off_t)file_bytes) != 0) {
        problem_set(problem, path, "free some space in /dev/shm", "shared memory cannot be had");
        return NULL;
    }
    Launch *launch = mmap(NULL, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return launch == MAP_FAILED ? NULL : launch;
}

static void become_mpirun(const char *runner, int ranks, const char *path)
{
    char count[16];
    snprintf(count, sizeof count, "%d", ranks);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    unsetenv("OPENBLAS_CORETYPE");
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* an interrupted judge leaves no ranks behind */
    execlp("mpirun", "mpirun", "-n", count, "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1",
           "--mca", "btl", "self,vader", "--mca", "btl_vader_single_copy_mechanism", "none", "--mca",
           "mpi_yield_when_idle", "1", "--mca", "odls_base_sigkill_timeout", "0", "--mca",
           "orte_abort_print_stack", "0", runner, path, (char *)NULL);
    perror("mpirun");
    _exit(127);
}

static Process start(const char *runner, int ranks, const char *path)
{
    fflush(NULL);
    Process process = {.pid = fork()};
    if (process.pid == 0) {
        char log[512];
        snprintf(log, sizeof log, "%s.log", runner);
        int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dup2(file, STDOUT_FILENO);
        dup2(file, STDERR_FILENO);
        dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
        become_mpirun(runner, ranks, path);
    }
    return process;
}

static bool has_ended(Process *process)
{
    if (!process->ended && waitpid(process->pid, &process->status, WNOHANG) == process->pid)
        process->ended = true;
    return process->ended;
}

/* What the ranks say of themselves stands where a lab could write: mpirun's own children are killed. */
static void kill_children(pid_t parent)
{
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "r");
    while (file && fscanf(file, "%d", &child) == 1)
        kill(child, SIGKILL);
    if (file)
        fclose(file);
}

static void stop(Process *process)
{
    if (!has_ended(process)) {
        kill_children(process->pid);
        for (int i = 0; i < 2000 && !has_ended(process); i++)
            nap(1000);
    }
    if (!process->ended) {
        kill(process->pid, SIGKILL);
        waitpid(process->pid, &process->status, 0);
    }
}

static bool wait_for_start(Process *process, const Launch *launch, int ranks)
{
    enum { LOOKS = 300000 }; /* a minute at least: a machine that is asked too much starts slowly */
    for (int look = 0; look < LOOKS; look++) {
        int idle = 0;
        for (int r = 0; r < ranks; r++)
            idle += atomic_load(&launch->rank[r].state) == IDLE;
        if (idle == ranks)
            return true;
        if (has_ended(process))
            return false;
        nap(200);
    }
    return false;
}

/* Waits for the case that was posted as number `posted` (from 1) of this launch. */
static Ending wait_for_case(Process *process, const Launch *launch, const Case *c, int posted,
                            double cpu_limit, char *story, size_t size)
{
    Watch watch = watch_begin(launch, c, posted, cpu_limit);
    for (;;) {
        int done = 0;
        for (int r = 0; r < c->world; r++)
            done += atomic_load(&launch->rank[r].done_cases) >= posted;
        if (done == c->world)
            return COMPLETE;
        if (has_ended(process)) {
            watch_crash(&watch, story, size);
            return CRASHED;
        }
        Ending ending = watch_look(&watch, story, size);
        if (ending != COMPLETE)
            return ending;
        nap(100);
    }
}

static void mark_begin(Outcome *outcome, const Launch *launch, int world)
{
    for (int r = 0; r < world; r++) {
        outcome->stream[r] = (const char *)launch + LAUNCH_BYTES + (size_t)r * STREAM_BYTES;
        outcome->begin[r] = atomic_load(&launch->rank[r].used);
    }
}

static void mark_end(Outcome *outcome, const Launch *launch, int world)
{
    for (int r = 0; r < world; r++) {
        int64_t used = atomic_load(&launch->rank[r].used);
        outcome->end[r] = used < outcome->begin[r] ? outcome->begin[r]
                          : used > STREAM_BYTES    ? STREAM_BYTES
                                                   : used;
    }
}

/* Plays cases from `first` on in one launch; returns the number of the next case that is to be played. */
static int play_from(Runs *runs, const char *runner, int ranks, const Case *cases, int first,
                     Problem *problem)
{
    char path[64];
    Launch *launch = make_file(path, problem);
    if (!launch)
        return -1;
    runs->launch[runs->launches++] = launch;
    Process process = start(runner, ranks, path);
    bool started = wait_for_start(&process, launch, ranks);
    unlink(path);
    if (!started) {
        stop(&process);
        problem_set(problem, NULL, "make doctor shows whether MPI starts", "mpirun could not start %s",
                    runner);
        return -1;
    }
    int i = first, failures = 0;
    for (; i < runs->count && failures == 0; i++) {
        Outcome *outcome = &runs->outcome[i];
        mark_begin(outcome, launch, cases[i].world);
        launch->control.current = cases[i];
        atomic_store(&launch->control.posted, i - first + 1);
        double cpu_limit = runs->cpu_limit > 0 ? runs->cpu_limit : watch_cpu_limit(&cases[i]);
        outcome->ending =
            wait_for_case(&process, launch, &cases[i], i - first + 1,
                          runs->looped ? cpu_limit / 4 : cpu_limit, outcome->story, sizeof outcome->story);
        failures += outcome->ending != COMPLETE;
        runs->looped = runs->looped || outcome->ending == LOOPED;
        if (failures)
            stop(&process);
        mark_end(outcome, launch, cases[i].world);
    }
    atomic_store(&launch->control.posted, -1);
    for (int k = 0; k < 5000 && !has_ended(&process); k++)
        nap(200);
    stop(&process);
    return i;
}

Runs *run_cases(const char *runner, int ranks, const Case *cases, int count, double cpu_limit,
                Problem *problem)
{
    Runs *runs = calloc(1, sizeof *runs);
    runs->count = count;
    runs->cpu_limit = cpu_limit;
    for (int i = 0; i < count; i++)
        runs->outcome[i].ending = NOT_RUN;
    for (int next = 0; next < count;) {
        next = play_from(runs, runner, ranks, cases, next, problem);
        if (next < 0) {
            runs_free(runs);
            return NULL;
        }
    }
    return runs;
}

const Outcome *run_outcome(const Runs *runs, int i)
{
    return &runs->outcome[i];
}

void runs_free(Runs *runs)
{
    for (int i = 0; i < runs->launches; i++)
        munmap(runs->launch[i], file_bytes);
    free(runs);
}
