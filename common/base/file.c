/* Opens regular files, and explains why other paths are rejected. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language.h"

static const char *obstacle_of(const struct stat *found)
{
    if (S_ISREG(found->st_mode))
        return NULL;
    return S_ISDIR(found->st_mode) ? _("it is a folder") : _("it is not a file");
}

const char *file_obstacle(const char *path)
{
    struct stat found;
    if (!*path)
        return _("it has no name");
    return stat(path, &found) ? NULL : obstacle_of(&found);
}

int file_open(const char *path, const char **reason)
{
    struct stat found;
    /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int known = fd >= 0 && fstat(fd, &found) == 0;
    *reason = known ? obstacle_of(&found) : strerror(errno);
    if (!*reason)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int file_open_text(const char *path, const char **reason)
{
    static const char mark[] = "\xEF\xBB\xBF";
    char first[sizeof mark - 1];
    const int fd = file_open(path, reason);
    if (fd >= 0 && read(fd, first, sizeof first) == sizeof first &&
        !memcmp(first, mark, sizeof first))
        return fd;
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}
