/* Replaces files atomically. */
#include "base/replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* A file without a name in the folder of `path`: a killed process leaves nothing. -1 where the file
 * system has none, or where it could not be given a name. */
static int open_nameless(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
    if (!folder)
        abort();
    const int fd = access("/proc/self/fd", X_OK) == 0
                       ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)
                       : -1;
    free(folder);
    return fd;
}

/* Locks the file under this name, and empties it; a killed process has left it. A file that is
 * being written stays locked until it has been renamed. */
static bool take_over(int fd, const char *name)
{
    struct stat own, named;
    return fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &own) && !lstat(name, &named) &&
           own.st_ino == named.st_ino && own.st_dev == named.st_dev && !ftruncate(fd, 0);
}

/* Under one name, so that the next process replaces what a killed one has left. Another process may
 * be writing that. */
static int open_beside(Replacement *file)
{
    if (asprintf(&file->beside, "%s.partial", file->path) < 0)
        abort();
    const int fd = open(file->beside, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (take_over(fd, file->beside))
        return fd;
    if (fd >= 0)
        close(fd);
    free(file->beside);
    if (asprintf(&file->beside, "%s.XXXXXX", file->path) < 0)
        abort();
    return mkostemp(file->beside, O_CLOEXEC);
}

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
    if (!file || !(file->path = strdup(path)))
        abort();
    int fd = open_nameless(path);
    if (fd < 0 && (fd = open_beside(file)) < 0) {
        problem_set(problem, path, hint, what, strerror(errno));
        forget(file);
        return NULL;
    }
    fchmod(fd, 0644); /* 0600 would exclude other users of the folder */
    file->stream = fdopen(fd, "w");
    return file;
}

void replacement_put(Replacement *file, const void *bytes, size_t count)
{
    if (!file->error && fwrite(bytes, 1, count, file->stream) != count)
        file->error = errno;
}

/* Links the nameless file: to `path`, or beside it if that exists, because no system call links over
 * a file. */
static bool give_name(Replacement *file)
{
    char nameless[32];
    snprintf(nameless, sizeof nameless, "/proc/self/fd/%d", fileno(file->stream));
    if (!linkat(AT_FDCWD, nameless, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW))
        return true;
    for (unsigned number = (unsigned)getpid(); errno == EEXIST; number++) {
        free(file->beside);
        if (asprintf(&file->beside, "%s.%06x", file->path, number & 0xffffff) < 0)
            abort();
        if (!linkat(AT_FDCWD, nameless, AT_FDCWD, file->beside, AT_SYMLINK_FOLLOW))
            return true;
    }
    free(file->beside);
    file->beside = NULL;
    return false;
}

/* All of the file is on disk when it gets a name, which it keeps only from one system call to the
 * next. */
static bool put_in_place(Replacement *file)
{
    return !fflush(file->stream) && !ferror(file->stream) && !fsync(fileno(file->stream)) &&
           (file->beside || give_name(file)) &&
           (!file->beside || !rename(file->beside, file->path));
}

bool replacement_end(Replacement *file, const char *hint, const char *what, Problem *problem)
{
    if (!file->error && !put_in_place(file))
        file->error = errno ? errno : EIO;
    if (!file->error) {
        fclose(file->stream);
        forget(file);
        return true;
    }
    problem_set(problem, file->path, hint, what, strerror(file->error));
    replacement_drop(file);
    return false;
}

void replacement_drop(Replacement *file)
{
    if (file->beside)
        unlink(file->beside); /* while it is locked */
    fclose(file->stream);
    forget(file);
}
