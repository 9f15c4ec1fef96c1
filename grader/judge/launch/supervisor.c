/* The supervisor of a launch. */
#include "grader/judge/launch/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/language.h"
#include "grader/judge/launch/processes.h"
#include "open_mpi.h" /* generated: OPEN_MPI_SETTINGS */

enum { PROCESSES = 200 }; /* mpirun and eight ranks need about thirty, counting threads */
static const rlim_t addresses = 3L << 30, file_bytes = 64 << 20, stack_bytes = 8 << 20;

static void limit(int resource, rlim_t value)
{
    struct rlimit old;
    getrlimit(resource, &old);
    if (old.rlim_max != RLIM_INFINITY && old.rlim_max < value)
        value = old.rlim_max;
    setrlimit(resource, &(struct rlimit){value, value});
}

/* Limits for this process and its descendants: no core files, bounded files, stacks and address
 * space, and PROCESSES processes beyond those that the user already has. */
static void set_limits(const Start *start)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, file_bytes);
    limit(RLIMIT_STACK, stack_bytes);
    if (!start->many_addresses)
        limit(RLIMIT_AS, addresses);
    limit(RLIMIT_NPROC, (rlim_t)PROCESSES + (rlim_t)start->already);
    limit(RLIMIT_MEMLOCK, 0);
    limit(RLIMIT_NOFILE, 1024);
}

static bool is_for_libraries(const char *variable)
{
    static const char *const kept[] = {
        "PATH=", "LD_LIBRARY_PATH=", "OPAL_PREFIX=", "OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "CUDA_",
        "EMULATED_GPUS=",
        /* the language of a rank's messages */
        "LANGUAGE=", "LC_ALL=", "LC_MESSAGES=", "LANG=", "TEXTDOMAINDIR="};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (!strncmp(variable, kept[i], strlen(kept[i])))
            return true;
    return false;
}

/* The settings of Open MPI, which common/comm/open_mpi.sh prints: name and value. The folder of the
 * memory that ranks share is SHARED. */
static const char *const of_open_mpi[][2] = {OPEN_MPI_SETTINGS};

/* Empties the environment except for what MPI and the system's libraries read, so that a lab can
 * read neither the seed nor other settings of make or the judge. */
static void clear_environment(const Seen *seen, const char *shared)
{
    char *kept[256];
    int count = 0;
    for (char **at = environ; *at && count < 256; at++)
        if (is_for_libraries(*at))
            kept[count++] = *at; /* the strings outlive the list of them */
    clearenv();
    for (int i = 0; i < count; i++)
        putenv(kept[i]);
    setenv("HOME", seen->temporary, 1);
    setenv("TMPDIR", seen->temporary, 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
#ifdef __x86_64__ /* the same kernels, so the same last digits, on every processor that has them */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        setenv("OPENBLAS_CORETYPE", "Haswell", 1);
#endif
    for (size_t i = 0; i < sizeof of_open_mpi / sizeof *of_open_mpi; i++)
        setenv(of_open_mpi[i][0], strcmp(of_open_mpi[i][1], "SHARED") ? of_open_mpi[i][1] : shared,
               1);
}

static _Noreturn void become_mpirun(const Start *start)
{
    char count[16];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(count, sizeof count, "%d", start->ranks);
    set_limits(start);
    clear_environment(&start->seen, start->place.sandboxed ? "/dev/shm" : start->seen.temporary);
    /* mpirun enters its folder again for each rank. The ranks' user may not enter root's. */
    if (!become(&start->place, false))
        dprintf(start->trouble, _("becoming the ranks' user: %s"), strerror(errno));
    else if (access(".", X_OK) == 0 || chdir(start->seen.temporary) == 0)
        execlp("mpirun", "mpirun", "-n", count, start->seen.runner, start->seen.launch,
               (char *)NULL);
    dprintf(start->trouble, "mpirun: %s", strerror(errno));
    _exit(127);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    return remove(path);
}

void remove_folder(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Waits until mpirun ends or a request to end it arrives; returns whether mpirun succeeded. */
static bool keep_watch(pid_t mpirun, const sigset_t *signals)
{
    for (;;) {
        int status, number = sigwaitinfo(signals, NULL);
        for (pid_t dead; (dead = waitpid(-1, &status, WNOHANG)) > 0;)
            if (dead == mpirun)
                return status == 0;
        if (number == SIGTERM)
            return false;
    }
}

/* Without a new exec, a process still shows the judge's command line, including the seed. */
static void forget_arguments(void)
{
    char text[4096];
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text);
    if (length > 0)
        memset(program_invocation_name, 0, (size_t)length);
    if (file >= 0)
        close(file);
}

/* If the judge ended before this process requested a signal at the judge's end, no signal will
 * come. But then the pipe `trouble` has no reader any more. */
static bool judge_has_ended(const Start *start)
{
    struct pollfd reader = {.fd = start->trouble};
    return poll(&reader, 1, 0) == 1 && reader.revents & POLLERR;
}

/* In a sandbox, this is process 1: all other processes end with it. Without a sandbox, it becomes
 * the reaper of all orphans and ends them. */
int supervise(void *context)
{
    Start *start = context;
    char why[200];
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    forget_arguments();
    setsid();
    dup2(start->said, STDOUT_FILENO);
    dup2(start->said, STDERR_FILENO);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(start->trouble, 3);
    close_range(4, ~0U, 0);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    start->trouble = 3;
    if (start->place.sandboxed && !sandbox_enter(&start->place, &start->seen, why, sizeof why)) {
        dprintf(start->trouble, "%s", why);
        return 1;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, start->place.sandboxed
                                ? SIGKILL
                                : SIGTERM); /* an interrupted judge leaves nothing behind */
    if (judge_has_ended(start)) {
        if (!start->place.sandboxed)
            remove_folder(start->place.folder);
        _exit(1);
    }
    pid_t mpirun = fork();
    if (mpirun == 0)
        become_mpirun(start);
    close(start->trouble);
    bool well = mpirun > 0 && keep_watch(mpirun, &signals);
    if (!start->place.sandboxed) {
        processes_end();
        remove_folder(start->place.folder);
    }
    _exit(well ? 0 : 1);
}
