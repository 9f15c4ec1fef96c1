/* Writes a verdict's file. */
#include "grader/judge/report/output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/language.h"
#include "base/replacement.h"

static const char refused[] = N_("the result cannot be written: %s"),
                  other_file[] = N_("name a file in an existing, writable folder");

/* Gives it the permissions of a new file. */
static bool replace(const char *path, const char *text, Problem *problem)
{
    const mode_t mask = umask(0);
    umask(mask);
    Replacement *file = replacement_begin(path, other_file, refused, problem);
    if (!file)
        return false;
    if (fchmod(fileno(file->stream), 0666 & ~mask) != 0)
        file->error = errno;
    replacement_put(file, text, strlen(text));
    const bool full = fflush(file->stream) != 0 && errno == ENOSPC;
    return replacement_end(file,
                           full ? N_("free some space, then give the command again") : other_file,
                           refused, problem);
}

bool write_file(const char *path, const char *text, Problem *problem)
{
    struct stat found;
    sigset_t all, before;
    if (!*path)
        return problem_set(problem, path, other_file, refused, _("it has no name"));
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return problem_set(problem, path, other_file, refused,
                           S_ISDIR(found.st_mode) ? _("it is a folder") : _("it is not a file"));
    sigfillset(&all); /* an interruption leaves no partial file behind */
    sigprocmask(SIG_BLOCK, &all, &before);
    bool good = replace(path, text, problem);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return good;
}
