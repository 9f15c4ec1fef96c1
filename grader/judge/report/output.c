/* Writes a result to a file. */
#include "grader/judge/report/output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/language.h"

static const char refused[] = N_("the result cannot be written: %s"),
                  other_file[] = N_("name a file in an existing, writable folder");

/* Replaces the file, with the permissions of a new file. */
static bool replace(const char *path, const OutputKind *kind, const char *text, Problem *problem)
{
    const mode_t mask = umask(0);
    umask(mask);
    Replacement *file = replacement_begin(path, kind, other_file, refused, problem);
    if (!file)
        return false;
    if (fchmod(fileno(file->stream), 0666 & ~mask) != 0)
        file->error = errno;
    replacement_put(file, text, strlen(text));
    const bool full = fflush(file->stream) != 0 && errno == ENOSPC;
    return replacement_end(file,
                           full ? N_("free some space, then run the command again") : other_file,
                           refused, problem);
}

bool write_file(const char *path, const OutputKind *kind, const char *text, Problem *problem)
{
    sigset_t all, before;
    sigfillset(&all); /* an interrupted judge leaves no temporary file behind */
    sigprocmask(SIG_BLOCK, &all, &before);
    bool good = replace(path, kind, text, problem);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return good;
}
