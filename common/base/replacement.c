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
#include "base/language.h"

/* Is `mark` in the first bytes of the file? */
static bool has_mark(const char *path, const char *mark)
{
    char bytes[1000];
    const char *reason;
    const int fd = file_open(path, &reason);
    const ssize_t count = fd >= 0 ? read(fd, bytes, sizeof bytes) : -1;
    if (fd >= 0)
        close(fd);
    return count > 0 && memmem(bytes, (size_t)count, mark, strlen(mark));
}

bool output_may_replace(const char *path, const OutputKind *kind, Problem *problem)
{
    struct stat found;
    if (!kind || stat(path, &found) || !S_ISREG(found.st_mode) || found.st_size == 0 ||
        (has_mark(path, kind->mark) && (!kind->is_one || kind->is_one(path))))
        return true;
    return problem_set(problem, path, N_("name another file, or move this one away"),
                       N_("the file exists, and is not %s"), _(kind->name));
}

/* The folder that contains this file. The caller frees the path. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
    if (!folder)
        abort();
    return folder;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

bool is_same_output(const char *one, const char *other)
{
    struct stat a, b;
    const bool has_a = !stat(one, &a), has_b = !stat(other, &b);
    if (has_a || has_b)
        return has_a && has_b && is_same(&a, &b);
    char *folder_a = folder_of(one), *folder_b = folder_of(other);
    const bool same = !stat(folder_a, &a) && !stat(folder_b, &b) && is_same(&a, &b) &&
                      !strcmp(basename(one), basename(other));
    free(folder_a);
    free(folder_b);
    return same;
}

/* Opens an unnamed file in the folder of `path`, so a killed process leaves nothing. Returns
 * -1 if the file system has no such files, or if there is no /proc, which give_name() needs. */
static int open_nameless(const char *path)
{
    char *folder = folder_of(path);
    const int fd = access("/proc/self/fd", X_OK) == 0
                       ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)
                       : -1;
    free(folder);
    return fd;
}

/* Locks and empties the open file `fd`, which a killed process may have left under this name.
 * Returns false if another process is writing it: that process keeps the lock until it has renamed
 * the file. */
static bool take_over(int fd, const char *name)
{
    struct stat own, named;
    return fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &own) && !lstat(name, &named) &&
           own.st_ino == named.st_ino && own.st_dev == named.st_dev && !ftruncate(fd, 0);
}

/* Opens `path.partial`. The name is fixed, so the next process reuses the file that a killed one
 * has left. If another process is writing that file, opens one with a unique name instead. Returns
 * -1 with errno if it can open neither. */
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

Replacement *replacement_begin(const char *path, const OutputKind *kind, const char *hint,
                               const char *what, Problem *problem)
{
    const char *obstacle = file_obstacle(path); /* a rename would replace even a device */
    if (obstacle) {
        problem_set(problem, path, hint, what, obstacle);
        return NULL;
    }
    if (!output_may_replace(path, kind, problem))
        return NULL;
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

/* Links the nameless file to `path` or, if `path` exists, to a new name beside it, because no
 * system call links over a file. */
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

/* Names the file only when all of it is on disk. If give_name() had to use a name beside `path`,
 * the next system call renames the file. */
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
        unlink(file->beside); /* before fclose() releases the lock */
    fclose(file->stream);
    forget(file);
}
