/* A launcher: mpirun and its ranks, from start to end. */
#include "grader/judge/launch/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/language.h"
#include "grader/judge/launch/supervisor.h"
#include "grader/judge/launch/processes.h"
#include "grader/judge/mpi/recorded.h"

enum {
    RANK_MEMORY = 512 << 20, /* memory limit of a rank; cases need a few megabytes */
    GPU_MEMORY =
        2047 << 20,     /* the same on a GPU: CUDA keeps its kernels and tables on the host too */
    LOG_BYTES = 1 << 20 /* limit of the stored output */
};

void printed_path(const char *runner, char path[LOG_PATH])
{
    snprintf(path, LOG_PATH, "%s.log", runner);
}

void printed_forget(const char *runner)
{
    char path[LOG_PATH];
    printed_path(runner, path);
    unlink(path);
}

/* As root, the judge runs the ranks under an unused user ID, derived from its process ID. So the
 * limits on a user's processes count only those of this judge. */
static Place place_of(const Launcher *launcher, const char *runner, bool sandboxed)
{
    enum {
        FIRST = 61184,
        COUNT = 4336
    }; /* systemd reserves this range for such users, and containers have it too */
    Place place = {runner, launcher->folder, geteuid(), getegid(), sandboxed, NULL};
    if (place.user == 0)
        place.user = place.group = (uid_t)(FIRST + getpid() % COUNT);
    return place;
}

static bool make_launch(Launcher *launcher, const Place *place, char *why, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/launch", launcher->folder);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = file >= 0 && ftruncate(file, (off_t)FILE_BYTES) == 0;
    if (good && place->user != geteuid())
        good = fchown(file, place->user, place->group) == 0;
    if (good)
        launcher->launch = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (!good || launcher->launch == MAP_FAILED) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
        launcher->launch = NULL;
    }
    return launcher->launch;
}

/* Without a sandbox, the ranks' user may not be able to reach the runner, so it gets a copy. */
static bool copy_runner(const char *from, const char *to, const Place *place)
{
    struct stat status;
    int in = open(from, O_RDONLY | O_CLOEXEC),
        out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
    bool good = in >= 0 && out >= 0 && fstat(in, &status) == 0 &&
                fchown(out, place->user, place->group) == 0;
    for (off_t left = good ? status.st_size : 0; good && left > 0;) {
        ssize_t sent = sendfile(out, in, NULL, (size_t)left);
        good = sent > 0;
        left -= sent;
    }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return good;
}

/* Reads all available output, but stores at most LOG_BYTES, so that endless printing does not fill
 * the disk. Under gdb, also prints the output at once. */
static void listen(Launcher *launcher)
{
    char text[4096];
    ssize_t length;
    while ((length = read(launcher->said, text, sizeof text)) > 0) {
        int64_t room = LOG_BYTES - launcher->logged, take = length < room ? length : room;
        if (take > 0 && write(launcher->log, text, (size_t)take) != take)
            take = room;
        launcher->logged += take;
        if (launcher->shows) {
            fwrite(text, 1, (size_t)length, stdout);
            fflush(stdout);
        }
    }
}

/* Forks the supervisor, and waits until mpirun runs or has failed. */
static bool launch_supervisor(Launcher *launcher, Start *start, char *why, size_t size)
{
    int trouble[2], said[2];
    ssize_t length = -1;
    if (pipe2(trouble, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0) {
        snprintf(why, size, _("pipes: %s"), strerror(errno));
        return false;
    }
    start->trouble = trouble[1];
    start->said = said[1];
    fflush(NULL);
    launcher->sandboxed = start->place.sandboxed;
    launcher->said = said[0];
    fcntl(said[0], F_SETFL, O_NONBLOCK);
    if (launcher->sandboxed)
        launcher->supervisor = sandbox_fork(&start->place, supervise, start, why, size);
    else if ((launcher->supervisor = fork()) == 0)
        _exit(supervise(start));
    close(trouble[1]);
    close(said[1]);
    if (launcher->supervisor > 0 && (length = read(trouble[0], why, size - 1)) > 0)
        why[length] = '\0';
    close(trouble[0]);
    bool good = launcher->supervisor > 0 && length == 0;
    if (good && launcher->sandboxed)
        remove_folder(launcher->folder); /* the shared file has been mounted inside */
    return good;
}

bool launcher_has_ended(Launcher *launcher)
{
    listen(launcher);
    if (!launcher->ended &&
        waitpid(launcher->supervisor, &launcher->status, WNOHANG) == launcher->supervisor)
        launcher->ended = true;
    return launcher->ended;
}

bool launcher_wait(Launcher *launcher, double seconds)
{
    enum { LOOK = 10 /* ms */ };
    const double until = clock_now() + seconds;
    struct pollfd output = {.fd = launcher->said, .events = POLLIN};
    while (!launcher_has_ended(launcher) && clock_now() < until)
        if (poll(&output, 1, LOOK) == 1 && !(output.revents & POLLIN))
            nap(100); /* all have closed it, and are about to end */
    return launcher->ended;
}

static const double start_seconds = 60; /* ranks start slowly on a busy machine */

/* mpirun is the supervisor's only child. It starts the ranks, in order, and no other process. */
static bool wait_for_ranks(Launcher *launcher)
{
    enum { LOOK = 10000 /* µs */ };
    const double until = clock_now() + start_seconds;
    for (int r = 0; r < launcher->ranks;) {
        const _Atomic int32_t *state = &launcher->launch->rank[r].state;
        if (launcher_has_ended(launcher) || clock_now() > until)
            return false;
        if (atomic_load(state) == IDLE)
            r++;
        else
            sleep_while(state, STARTING, LOOK);
    }
    if (process_children(launcher->supervisor, &launcher->mpirun, 1) >= 1)
        process_children(launcher->mpirun, launcher->pid, launcher->ranks);
    return true;
}

void launcher_stop(Launcher *launcher)
{
    static const double end_seconds = 5;
    if (launcher->supervisor > 0 && !launcher_has_ended(launcher)) {
        kill(launcher->supervisor, launcher->sandboxed ? SIGKILL : SIGTERM);
        launcher_wait(launcher, end_seconds);
    }
    if (launcher->supervisor > 0 && !launcher->ended) {
        kill(launcher->supervisor, SIGKILL);
        waitpid(launcher->supervisor, NULL, 0);
    }
    if (!launcher->sandboxed) {
        lines_rest(); /* it is a descendant, too */
        processes_end();
    }
    remove_folder(launcher->folder);
    close(launcher->said);
    close(launcher->log);
}

static void give_back(Launcher *launcher)
{
    launcher_stop(launcher);
    if (launcher->launch)
        munmap(launcher->launch, FILE_BYTES);
    launcher->launch = NULL;
}

static bool prepare(Launcher *launcher, Start *start, const char *log, char *why, size_t size)
{
    launcher->supervisor = 0;
    launcher->said = -1;
    launcher->ended = false;
    launcher->launch = NULL;
    const char *folder;
    launches_with_room(&folder);
    snprintf(launcher->folder, sizeof launcher->folder, "%s/balise.XXXXXX", folder);
    if (!mkdtemp(launcher->folder) ||
        (launcher->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) < 0) {
        snprintf(why, size, _("%s or %s: %s"), launcher->folder, log, strerror(errno));
        return false;
    }
    launcher->logged = lseek(launcher->log, 0, SEEK_END);
    Place *place = &start->place;
    /* In some containers, even root cannot become another user. */
    if (place->user != geteuid() &&
        (!may_become_others() || chown(launcher->folder, place->user, place->group) != 0)) {
        place->user = geteuid();
        place->group = getegid();
    }
    if (!start->place.sandboxed)
        start->already = process_count(start->place.user);
    return make_launch(launcher, &start->place, why, size);
}

/* Tries /bin/true instead of a lab. */
bool sandbox_works(char *why, size_t size)
{
    Launcher launcher = {.ranks = 1, .said = -1, .log = -1};
    Start start = {.place = place_of(&launcher, "/bin/true", true), .ranks = 1};
    start.seen = place_seen(&start.place);
    bool good = prepare(&launcher, &start, "/dev/null", why, size) &&
                launch_supervisor(&launcher, &start, why, size);
    if (good && !(launcher_wait(&launcher, start_seconds) && launcher.status == 0)) {
        snprintf(why, size, "%s", _("mpirun could not run /bin/true in the sandbox"));
        good = false;
    }
    give_back(&launcher);
    return good;
}

static bool try_start(Launcher *launcher, const Sandbox *sandbox, const char *runner,
                      bool sandboxed, char *why, size_t size)
{
    char copy[256], log[LOG_PATH];
    const char *slash = strrchr(runner, '/');
    Start start = {.place = place_of(launcher, runner, sandboxed),
                   .ranks = launcher->ranks,
                   .many_addresses = sandbox->sanitized || sandbox->gpu};
    const Gpus gpus = gpus_of("/dev");
    start.place.gpus = sandbox->gpu ? &gpus : NULL;
    launcher->memory = sandbox->gpu ? GPU_MEMORY : RANK_MEMORY;
    printed_path(runner, log);
    snprintf(copy, sizeof copy, "/tmp/balise.%d.%.200s", (int)getpid(), slash ? slash + 1 : runner);
    bool good = prepare(launcher, &start, log, why, size);
    if (good)
        launcher->launch->control.debugged = sandbox->debugged;
    bool copied = good && !sandboxed && start.place.user != geteuid() &&
                  copy_runner(runner, copy, &start.place);
    if (copied)
        start.place.runner = copy;
    start.seen = place_seen(&start.place);
    good = good && launch_supervisor(launcher, &start, why, size);
    if (good && !wait_for_ranks(launcher)) {
        snprintf(why, size, _("mpirun could not start %s"), runner);
        launcher->fell = launcher->ended;
        good = false;
    }
    if (copied)
        unlink(copy);
    if (!good)
        give_back(launcher);
    return good;
}

bool launcher_start(Launcher *launcher, Sandbox *sandbox, const char *runner, int ranks, char *why,
                    size_t size)
{
    char words[200];
    prctl(PR_SET_DUMPABLE, 0); /* nobody may read the judge's memory and descriptors */
    *launcher = (Launcher){.ranks = ranks, .said = -1, .log = -1, .shows = sandbox->debugged};
    if (sandbox->wish == SANDBOX_OFF)
        snprintf(sandbox->missing, sizeof sandbox->missing, "%s", _("switched off"));
    if (!sandbox->missing[0]) {
        if (try_start(launcher, sandbox, runner, true, why, size))
            return sandbox->used = true;
        if (sandbox->wish == SANDBOX_DEMANDED || sandbox_works(words, sizeof words))
            return false;
        snprintf(sandbox->missing, sizeof sandbox->missing, "%s", why);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* in case a lab ends its supervisor */
    return try_start(launcher, sandbox, runner, false, why, size);
}
