#include "grader/judge/report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language.h"

static bool refuse(Problem *problem, const char *path, const char *why)
{
    const char *hint = N_("name a file in a folder that exists and can be written");
    if (!strcmp(why, strerror(ENOSPC)))
        hint = N_("free some space; the command can then be given again");
    return problem_set(problem, path, hint, "the result cannot be written: %s", why);
}

static bool put_all(int file, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t done = write(file, text, left);
        if (done < 0 && errno != EINTR)
            return false;
        left -= done > 0 ? (size_t)done : 0;
        text += done > 0 ? done : 0;
    }
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(file, 0666 & ~mask) == 0 && fsync(file) == 0;
}

/* A file without a name as yet, in the folder of `path`, where the file system has such: whoever is killed while it is written leaves nothing. */
static int open_nameless(const char *path)
{
    char folder[4200];
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return open(slash ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

static bool give_name(int file, const char *name)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ||
           (errno == EEXIST && unlink(name) == 0 &&
            linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0);
}

/* Written whole under a name of its own, which then becomes `path`. */
static bool write_beside(const char *path, const char *text, Problem *problem)
{
    char beside[4200];
    if (snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= (int)sizeof beside)
        return refuse(problem, "", _("its name is too long"));
    const int nameless = open_nameless(path), file = nameless >= 0 ? nameless : mkstemp(beside);
    if (file < 0)
        return refuse(problem, path, strerror(errno));
    if (nameless >= 0)
        snprintf(beside, sizeof beside, "%s.%06d", path, (int)getpid() % 1000000);
    bool good = put_all(file, text) && (nameless < 0 || give_name(file, beside));
    int error = errno;
    if (close(file) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good && rename(beside, path) != 0) {
        good = false;
        error = errno;
    }
    if (good)
        return true;
    unlink(beside);
    return refuse(problem, path, strerror(error));
}

bool write_file(const char *path, const char *text, Problem *problem)
{
    struct stat found;
    sigset_t all, before;
    if (!*path)
        return refuse(problem, path, _("it has no name"));
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return refuse(problem, path,
                      S_ISDIR(found.st_mode) ? _("it is a folder") : _("it is not a file"));
    sigfillset(&all); /* who is interrupted leaves no piece of a file behind */
    sigprocmask(SIG_BLOCK, &all, &before);
    bool good = write_beside(path, text, problem);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return good;
}
