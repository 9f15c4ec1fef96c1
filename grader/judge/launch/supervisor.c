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
#include <sys/wait.h>
#include <unistd.h>

#include "base/language.h"
#include "grader/judge/launch/limits.h"
#include "grader/judge/launch/processes.h"

static _Noreturn void become_mpirun(const Start *start)
{
    char count[16];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(count, sizeof count, "%d", start->ranks);
    limits_set(start->already, start->many_addresses);
    limits_environment(&start->seen);
    if (!become(&start->place, false))
        dprintf(start->trouble, _("the ranks' user: %s"), strerror(errno));
    else
        execlp("mpirun", "mpirun", "--quiet", "-n", count, "--oversubscribe", "--bind-to", "none",
               "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "--mca",
               "btl_vader_single_copy_mechanism", "none", "--mca", "btl_vader_backing_directory",
               start->place.sandboxed ? "/dev/shm" : start->seen.temporary, "--mca",
               "mpi_yield_when_idle", "1", "--mca", "odls_base_sigkill_timeout", "0", "--mca",
               "orte_abort_print_stack", "0", start->seen.runner, start->seen.launch, (char *)NULL);
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

/* Waits for mpirun to end, or to be told that it shall; returns whether it ended well. */
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

/* A process that is not started anew still shows how the judge was called, seed and all. */
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

/* The judge reads what troubles its supervisor for as long as it lives. One that ended before this process asked to be told
 * sends no signal. */
static bool judge_has_ended(const Start *start)
{
    struct pollfd reader = {.fd = start->trouble};
    return poll(&reader, 1, 0) == 1 && reader.revents & POLLERR;
}

/* Process 1 of a sandbox: whatever lives there ends with it. Without one it asks for all orphans, so as to end them. */
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
