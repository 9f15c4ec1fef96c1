/* Memory limits of launches: the shared memory, and what each rank holds. */
#include <limits.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/language.h"
#include "grader/judge/compare/expected.h"
#include "grader/judge/launch/launcher.h"
#include "grader/judge/launch/processes.h"

static double free_bytes(const char *folder)
{
    struct statvfs disk;
    return statvfs(folder, &disk) == 0 ? (double)disk.f_bavail * (double)disk.f_frsize : 0;
}

/* Chooses /dev/shm only if everything that a launch may write fits there, because the kernel kills
 * a process that touches a page for which there is no room. */
int launches_with_room(const char **folder)
{
    enum { LEAST = 64 << 20 }; /* few launches write as much */
    static const double needed = 1.5 * (double)FILE_BYTES;
    static bool told;
    const double shm = free_bytes("/dev/shm");
    *folder = shm >= needed ? "/dev/shm" : "/tmp";
    if (shm < needed && !told)
        fprintf(
            stderr,
            _("warning: /dev/shm has %.0f MB free of the %.0f MB that a launch may write: the grader uses /tmp instead\n"),
            shm / (1 << 20), needed / (1 << 20));
    told = true;
    const double room = free_bytes(*folder), fit = room / needed;
    if (room < LEAST)
        give_up_with(N_("free some space; df /tmp /dev/shm shows how much there is"),
                     _("/dev/shm has %.0f MB free and /tmp %.0f MB, but ranks and judge share %d "
                       "MB and more"),
                     shm / (1 << 20), room / (1 << 20), LEAST >> 20);
    return fit < 1 ? 1 : fit > INT_MAX ? INT_MAX : (int)fit;
}

static bool is_too_big(const Launcher *launcher, int pid, int64_t resident, char *diagnosis,
                       size_t size)
{
    int rank = launcher->ranks - 1;
    long long megabytes = (long long)(resident >> 20);
    if (resident <= launcher->memory)
        return false;
    while (rank >= 0 && launcher->pid[rank] != pid)
        rank--;
    if (pid == launcher->mpirun)
        snprintf(diagnosis, size,
                 _("mpirun held %lld MB of what ranks sent it: they print more than the "
                   "grader can record, or write to a connection of MPI"),
                 megabytes);
    else
        snprintf(
            diagnosis, size,
            rank < 0
                ? _("memory limit exceeded: process %d held %lld MB; the limit is %d MB per rank")
                : _("memory limit exceeded: rank %d held %lld MB; the limit is %d MB"),
            rank < 0 ? pid : rank, megabytes, (int)(launcher->memory >> 20));
    return true;
}

bool launcher_is_too_big(Launcher *launcher, char *diagnosis, size_t size)
{
    static const double seldom = 0.02; /* seconds between two readings of /proc */
    int found[512];
    int64_t sum = 0;
    double now = clock_now();
    if (now - launcher->weighed < seldom)
        return false;
    launcher->weighed = now;
    int count = process_descendants(launcher->supervisor, found, 512);
    for (int i = 0; i < count; i++) {
        int64_t resident = process_state(found[i]).resident;
        sum += resident;
        if (is_too_big(launcher, found[i], resident, diagnosis, size))
            return true;
    }
    if (sum <= launcher->memory * (launcher->ranks + 1))
        return false;
    snprintf(diagnosis, size,
             _("memory limit exceeded: %d processes held %lld MB; the limit is %d MB per rank"),
             count, (long long)(sum >> 20), (int)(launcher->memory >> 20));
    return true;
}
