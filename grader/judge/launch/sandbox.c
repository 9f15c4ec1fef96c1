/* A sandbox's namespaces, users and capabilities. */
#include "grader/judge/launch/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/language.h"

Seen place_seen(const Place *place)
{
    Seen seen;
    const char *slash = strrchr(place->runner, '/');
    snprintf(seen.temporary, sizeof seen.temporary, "%.100s",
             place->sandboxed ? "/tmp" : place->folder);
    snprintf(seen.launch, sizeof seen.launch, "%.100s/launch",
             place->sandboxed ? "/dev/shm" : place->folder);
    if (place->sandboxed)
        snprintf(seen.runner, sizeof seen.runner, "/run/%.200s", slash ? slash + 1 : place->runner);
    else
        snprintf(seen.runner, sizeof seen.runner, "%.500s", place->runner);
    return seen;
}

/* ---- the fork */

typedef struct Birth {
    int (*child)(void *context);
    void *context;
    int ends[2]; /* of a pair of sockets: the parent's, the child's */
} Birth;

/* The parent cannot map the user IDs of a non-dumpable process. So the child becomes dumpable,
 * waits until the parent has mapped them, and then becomes non-dumpable. */
static int be_born(void *argument)
{
    Birth *birth = argument;
    char byte = 0;
    close(birth->ends[0]);
    prctl(PR_SET_DUMPABLE, 1);
    if (write(birth->ends[1], &byte, 1) != 1 || read(birth->ends[1], &byte, 1) != 1)
        return 1;
    prctl(PR_SET_DUMPABLE, 0);
    return birth->child(birth->context);
}

static bool write_file(pid_t pid, const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    bool good = write(file, text, strlen(text)) == (ssize_t)strlen(text);
    close(file);
    return good;
}

/* Maps IDs to the same IDs inside the sandbox: an ordinary user's own ID, or all of root's IDs. */
static bool tell_who(pid_t pid, const char *name, unsigned own)
{
    char path[32], map[4096] = "";
    unsigned inside, outside, count;
    size_t used = 0;
    if (geteuid() != 0) {
        snprintf(map, sizeof map, "%u %u 1", own, own);
        return write_file(pid, name, map);
    }
    snprintf(path, sizeof path, "/proc/self/%s", name);
    FILE *file = fopen(path, "re");
    while (file && used < sizeof map - 40 &&
           fscanf(file, "%u %u %u", &inside, &outside, &count) == 3)
        used +=
            (size_t)snprintf(map + used, sizeof map - used, "%u %u %u\n", inside, inside, count);
    if (file)
        fclose(file);
    return write_file(pid, name, map);
}

static bool tell_all(pid_t pid, const Place *place)
{
    return (geteuid() == 0 || write_file(pid, "setgroups", "deny")) &&
           tell_who(pid, "uid_map", place->user) && tell_who(pid, "gid_map", place->group);
}

pid_t sandbox_fork(const Place *place, int (*child)(void *context), void *context, char *why,
                   size_t size)
{
    static _Alignas(16) char stack[1 << 19];
    static const int spaces =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC;
    Birth birth = {child, context, {-1, -1}};
    char byte = 0;
    pid_t pid = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, birth.ends) == 0)
        pid = clone(be_born, stack + sizeof stack, spaces | SIGCHLD, &birth);
    int error = errno;
    close(birth.ends[1]);
    if (pid < 0) {
        snprintf(why, size, _("namespaces: %s"), strerror(error));
    } else if (read(birth.ends[0], &byte, 1) != 1 || !tell_all(pid, place)) {
        snprintf(why, size, _("its user %u: %s"), place->user, strerror(errno));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        pid = -1;
    } else {
        send(birth.ends[0], &byte, 1, MSG_NOSIGNAL); /* waitpid() will show a dead child */
    }
    close(birth.ends[0]);
    return pid;
}

/* ---- the child */

/* Either all permitted capabilities take effect, or none is left. */
static bool set_capabilities(bool keep)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    if (keep && syscall(SYS_capget, &header, sets) != 0)
        return false;
    for (int i = 0; keep && i < _LINUX_CAPABILITY_U32S_3; i++)
        sets[i].effective = sets[i].permitted;
    return syscall(SYS_capset, &header, sets) == 0;
}

bool may_become_others(void)
{
    static const __u32 needed = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_CHOWN;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
    return syscall(SYS_capget, &header, sets) == 0 && (sets[0].effective & needed) == needed;
}

bool become(const Place *place, bool keep_capabilities)
{
    const uid_t user = place->user;
    const gid_t group = place->group;
    const Gpus *gpus = place->gpus;
    prctl(PR_SET_KEEPCAPS, keep_capabilities);
    if (getuid() != user &&
        (setgroups(gpus ? (size_t)gpus->groups : 0, gpus ? gpus->group : NULL) != 0 ||
         setresgid(group, group, group) != 0 || setresuid(user, user, user) != 0))
        return false;
    for (int capability = 0; !keep_capabilities && capability < 64; capability++)
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    return set_capabilities(keep_capabilities) &&
           (keep_capabilities || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static bool loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = any >= 0 && ioctl(any, SIOCSIFFLAGS, &request) == 0;
    if (any >= 0)
        close(any);
    return good;
}

static bool forbid_namespaces(void)
{
    int file = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT; /* an older kernel lacks this file */
    bool good = write(file, "0", 1) == 1;
    close(file);
    return good;
}

bool sandbox_enter(const Place *place, const Seen *seen, char *why, size_t size)
{
    if (!sandbox_files(place, seen, why, size))
        return false;
    const char *what = !loopback_up()          ? _("starting the loopback")
                       : !forbid_namespaces()  ? _("forbidding further namespaces")
                       : !become(place, false) ? _("giving up capabilities")
                                               : NULL;
    if (what)
        snprintf(why, size, "%s%s%s", what, _(": "), strerror(errno));
    return !what;
}
