#include "grader/judge/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/language.h"
#include "grader/judge/keeper.h"
#include "grader/judge/limits.h"
#include "grader/judge/printed.h"
#include "grader/judge/processes.h"

static void nap(long microseconds)
{
    nanosleep(&(struct timespec){0, microseconds * 1000}, NULL);
}

/* Root lends the ranks a number that is nobody's, and no other judge's either, so that it counts and ends them alone. */
static Place place_of(const Crew *crew, const char *runner, bool sandboxed)
{
    enum { FIRST = 61184, COUNT = 4336 }; /* set aside for this by systemd, within what containers have */
    Place place = {runner, crew->folder, geteuid(), getegid(), sandboxed, NULL};
    if (place.user == 0)
        place.user = place.group = (uid_t)(FIRST + getpid() % COUNT);
    return place;
}

static bool make_launch(Crew *crew, const Place *place, char *why, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/launch", crew->folder);
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = file >= 0 && ftruncate(file, (off_t)FILE_BYTES) == 0;
    if (good && place->user != geteuid())
        good = fchown(file, place->user, place->group) == 0;
    if (good)
        crew->launch = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (!good || crew->launch == MAP_FAILED) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
        crew->launch = NULL;
    }
    return crew->launch;
}

/* Without a sandbox another user may not reach the runner where it is: it gets a copy. */
static bool copy_runner(const char *from, const char *to, const Place *place)
{
    struct stat status;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
    bool good = in >= 0 && out >= 0 && fstat(in, &status) == 0 && fchown(out, place->user, place->group) == 0;
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

/* Reads what there is, and writes it down up to LOG_BYTES: a lab that prints without end fills no disk. */
static void listen(Crew *crew)
{
    char text[4096];
    ssize_t length;
    while ((length = read(crew->said, text, sizeof text)) > 0) {
        int64_t room = LOG_BYTES - crew->logged, take = length < room ? length : room;
        if (take > 0 && write(crew->log, text, (size_t)take) != take)
            take = room;
        crew->logged += take;
    }
}

static bool open_log(Crew *crew, const char *path)
{
    crew->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    crew->logged = crew->log >= 0 ? lseek(crew->log, 0, SEEK_END) : 0;
    return crew->log >= 0;
}

/* Forks the keeper, and waits until mpirun runs or cannot. */
static bool launch_keeper(Crew *crew, Start *start, char *why, size_t size)
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
    crew->sandboxed = start->place.sandboxed;
    crew->said = said[0];
    fcntl(said[0], F_SETFL, O_NONBLOCK);
    if (crew->sandboxed)
        crew->keeper = sandbox_fork(&start->place, keep, start, why, size);
    else if ((crew->keeper = fork()) == 0)
        _exit(keep(start));
    close(trouble[1]);
    close(said[1]);
    if (crew->keeper > 0 && (length = read(trouble[0], why, size - 1)) > 0)
        why[length] = '\0';
    close(trouble[0]);
    bool good = crew->keeper > 0 && length == 0;
    if (good && crew->sandboxed)
        remove_folder(crew->folder); /* it has been laid out within */
    return good;
}

bool crew_has_ended(Crew *crew)
{
    listen(crew);
    if (!crew->ended && waitpid(crew->keeper, &crew->status, WNOHANG) == crew->keeper)
        crew->ended = true;
    return crew->ended;
}

/* mpirun starts the ranks in their order, and nothing else; it is the keeper's one child. */
static void find_ranks(Crew *crew)
{
    memset(crew->pid, 0, sizeof crew->pid);
    if (process_children(crew->keeper, &crew->mpirun, 1) >= 1)
        process_children(crew->mpirun, crew->pid, crew->ranks);
}

enum { LOOKS = 300000 }; /* a minute at least: a machine that is asked too much starts slowly */

static bool wait_for_ranks(Crew *crew)
{
    for (int look = 0; look < LOOKS; look++) {
        int idle = 0;
        for (int r = 0; r < crew->ranks; r++)
            idle += atomic_load(&crew->launch->rank[r].state) == IDLE;
        if (crew_has_ended(crew))
            return false;
        if (idle == crew->ranks) {
            find_ranks(crew);
            return true;
        }
        nap(200);
    }
    return false;
}

void crew_stop(Crew *crew)
{
    enum { MILLISECONDS = 5000 };
    if (crew->keeper > 0 && !crew_has_ended(crew)) {
        kill(crew->keeper, crew->sandboxed ? SIGKILL : SIGTERM);
        for (int i = 0; i < 10 * MILLISECONDS && !crew_has_ended(crew); i++)
            nap(100);
    }
    if (crew->keeper > 0 && !crew->ended) {
        kill(crew->keeper, SIGKILL);
        waitpid(crew->keeper, NULL, 0);
    }
    if (!crew->sandboxed)
        processes_end();
    remove_folder(crew->folder);
    close(crew->said);
    close(crew->log);
}

static void give_back(Crew *crew)
{
    crew_stop(crew);
    if (crew->launch)
        munmap(crew->launch, FILE_BYTES);
    crew->launch = NULL;
}

/* Root may have been left without the right to be others, in some containers. */
static bool lend(const char *folder, const Place *place)
{
    return may_become_others() && chown(folder, place->user, place->group) == 0;
}

static bool prepare(Crew *crew, Start *start, const char *log, char *why, size_t size)
{
    crew->keeper = 0;
    crew->said = -1;
    crew->ended = false;
    crew->launch = NULL;
    snprintf(crew->folder, sizeof crew->folder, "/dev/shm/balise.XXXXXX");
    if (!mkdtemp(crew->folder) || !open_log(crew, log)) {
        snprintf(why, size, _("%s or %s: %s"), crew->folder, log, strerror(errno));
        return false;
    }
    if (start->place.user != geteuid() && !lend(crew->folder, &start->place)) {
        start->place.user = geteuid();
        start->place.group = getegid();
    }
    if (!start->place.sandboxed)
        start->already = process_count(start->place.user);
    return make_launch(crew, &start->place, why, size);
}

/* The program is no lab's. */
bool sandbox_works(char *why, size_t size)
{
    Crew crew = {.ranks = 1, .said = -1, .log = -1};
    Start start = {.place = place_of(&crew, "/bin/true", true), .ranks = 1};
    start.seen = place_seen(&start.place);
    bool good = prepare(&crew, &start, "/dev/null", why, size) && launch_keeper(&crew, &start, why, size);
    for (int look = 0; good && look < LOOKS && !crew_has_ended(&crew); look++)
        nap(200);
    if (good && !(crew.ended && crew.status == 0)) {
        snprintf(why, size, "%s", _("mpirun did not run /bin/true there"));
        good = false;
    }
    give_back(&crew);
    return good;
}

static bool try_start(Crew *crew, const Sandbox *sandbox, const char *runner, bool sandboxed, char *why,
                      size_t size)
{
    char copy[256], log[LOG_PATH];
    const char *slash = strrchr(runner, '/');
    Start start = {.place = place_of(crew, runner, sandboxed),
                   .ranks = crew->ranks,
                   .many_addresses = sandbox->sanitized || sandbox->gpu};
    const Gpus gpus = gpus_of("/dev");
    start.place.gpus = sandbox->gpu ? &gpus : NULL;
    crew->memory = sandbox->gpu ? GPU_MEMORY : RANK_MEMORY;
    printed_path(runner, log);
    snprintf(copy, sizeof copy, "/tmp/balise.%d.%.200s", (int)getpid(), slash ? slash + 1 : runner);
    bool good = prepare(crew, &start, log, why, size);
    if (good)
        crew->launch->control.debugged = sandbox->debugged;
    bool copied =
        good && !sandboxed && start.place.user != geteuid() && copy_runner(runner, copy, &start.place);
    if (copied)
        start.place.runner = copy;
    start.seen = place_seen(&start.place);
    good = good && launch_keeper(crew, &start, why, size);
    if (good && !wait_for_ranks(crew)) {
        snprintf(why, size, _("mpirun could not start %s"), runner);
        good = false;
    }
    if (copied)
        unlink(copy);
    if (!good)
        give_back(crew);
    return good;
}

bool crew_start(Crew *crew, Sandbox *sandbox, const char *runner, int ranks, char *why, size_t size)
{
    char words[200];
    prctl(PR_SET_DUMPABLE, 0); /* the judge's memory and descriptors are nobody's to read */
    *crew = (Crew){.ranks = ranks, .said = -1, .log = -1};
    if (sandbox->wish == SANDBOX_OFF)
        snprintf(sandbox->missing, sizeof sandbox->missing, "%s", _("switched off"));
    if (!sandbox->missing[0]) {
        if (try_start(crew, sandbox, runner, true, why, size))
            return sandbox->used = true;
        if (sandbox->wish == SANDBOX_DEMANDED || sandbox_works(words, sizeof words))
            return false;
        snprintf(sandbox->missing, sizeof sandbox->missing, "%s", why);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* should a lab end its keeper */
    return try_start(crew, sandbox, runner, false, why, size);
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

static int rank_of(const Crew *crew, int pid)
{
    for (int r = 0; r < crew->ranks; r++)
        if (crew->pid[r] == pid)
            return r;
    return -1;
}

static bool is_too_big(const Crew *crew, int pid, int64_t resident, char *story, size_t size)
{
    int rank = rank_of(crew, pid);
    long long megabytes = (long long)(resident >> 20);
    if (resident <= crew->memory)
        return false;
    if (pid == crew->mpirun)
        snprintf(story, size, _("the ranks print more than can be taken down: mpirun held %lld MB of it"),
                 megabytes);
    else
        snprintf(
            story, size,
            rank < 0
                ? _("the memory allowed was exceeded: process %d held %lld MB, where a rank may hold %d MB")
                : _("the memory allowed was exceeded: rank %d held %lld MB, where a rank may hold %d MB"),
            rank < 0 ? pid : rank, megabytes, (int)(crew->memory >> 20));
    return true;
}

bool crew_is_too_big(Crew *crew, char *story, size_t size)
{
    static const double seldom = 0.02; /* as it reads /proc */
    int found[512];
    int64_t sum = 0;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (now - crew->weighed < seldom)
        return false;
    crew->weighed = now;
    int count = process_descendants(crew->keeper, found, 512);
    for (int i = 0; i < count; i++) {
        int64_t resident = process_state(found[i]).resident;
        sum += resident;
        if (is_too_big(crew, found[i], resident, story, size))
            return true;
    }
    if (sum <= crew->memory * (crew->ranks + 1))
        return false;
    snprintf(story, size,
             _("the memory allowed was exceeded: %d processes held %lld MB, where %d MB a rank are allowed"),
             count, (long long)(sum >> 20), (int)(crew->memory >> 20));
    return true;
}
