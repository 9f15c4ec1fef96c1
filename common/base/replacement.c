/* Replaces files atomically. */
#include "base/replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static void forget(Replacement *file)
{
    free(file->path);
    free(file->beside);
    free(file);
}

Replacement *replacement_begin(const char *path, const char *hint, const char *what,
                               Problem *problem)
{
    const char *obstacle = file_obstacle(path); /* a rename would put a file in its place */
    if (obstacle) {
        problem_set(problem, path, hint, what, obstacle);
        return NULL;
    }
    Replacement *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path)) || asprintf(&file->beside, "%s.XXXXXX", path) < 0)
        abort();
    int fd = mkostemp(file->beside, O_CLOEXEC);
    if (fd < 0) {
        problem_set(problem, path, hint, what, strerror(errno));
        forget(file);
        return NULL;
    }
    fchmod(fd, 0644); /* mkostemp's 0600 would exclude other users of the folder */
    file->stream = fdopen(fd, "w");
    return file;
}

void replacement_put(Replacement *file, const void *bytes, size_t count)
{
    if (!file->error && fwrite(bytes, 1, count, file->stream) != count)
        file->error = errno;
}

bool replacement_end(Replacement *file, const char *hint, const char *what, Problem *problem)
{
    if (!file->error &&
        (fflush(file->stream) || ferror(file->stream) || fsync(fileno(file->stream))))
        file->error = errno ? errno : EIO;
    if (fclose(file->stream) && !file->error)
        file->error = errno;
    if (!file->error && rename(file->beside, file->path))
        file->error = errno;
    const bool good = !file->error;
    if (!good) {
        unlink(file->beside);
        problem_set(problem, file->path, hint, what, strerror(file->error));
    }
    forget(file);
    return good;
}

void replacement_drop(Replacement *file)
{
    fclose(file->stream);
    unlink(file->beside);
    forget(file);
}
