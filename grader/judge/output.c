#include "grader/judge/output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool refuse(Problem *problem, const char *path, const char *why)
{
    return problem_set(problem, path, "name a file in a folder that exists and can be written",
                       "the result cannot be written: %s", why);
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

static bool write_beside(const char *path, const char *text, Problem *problem)
{
    char beside[4200];
    if (snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= (int)sizeof beside)
        return refuse(problem, "", "its name is too long");
    int file = mkstemp(beside);
    if (file < 0)
        return refuse(problem, path, strerror(errno));
    bool good = put_all(file, text);
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
        return refuse(problem, path, "it has no name");
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return refuse(problem, path, S_ISDIR(found.st_mode) ? "it is a folder" : "it is not a file");
    sigfillset(&all); /* who is interrupted leaves no piece of a file behind */
    sigprocmask(SIG_BLOCK, &all, &before);
    bool good = write_beside(path, text, problem);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return good;
}
