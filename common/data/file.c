/* Memory, whole files, and places in them. */
#include "data/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void *reallocate(void *memory, size_t bytes)
{
    void *grown = realloc(memory, bytes ? bytes : 1);
    if (!grown) {
        fprintf(
            stderr,
            _("error: no memory for %zu bytes\n  HINT: close other programs, or use less data\n"),
            bytes);
        exit(2);
    }
    return grown;
}

void *allocate(size_t bytes)
{
    return reallocate(NULL, bytes);
}

void place_in_file(char *place, const char *path, int64_t row, int64_t line)
{
    const int numbers = 64;
    int length = (int)strlen(path), room = PLACE_SIZE - numbers;
    const char *dots = "";
    if (length > room) {
        path += length - room;
        dots = "...";
    }
    if (row > 0)
        snprintf(place, PLACE_SIZE, _("%s%s: row %lld (line %lld)"), dots, path, (long long)row,
                 (long long)line);
    else
        snprintf(place, PLACE_SIZE, _("%s%s: line %lld"), dots, path, (long long)line);
}

void skip_bom(const char **bytes, size_t *length)
{
    if (*length >= 3 && memcmp(*bytes, "\xEF\xBB\xBF", 3) == 0) {
        *bytes += 3;
        *length -= 3;
    }
}

static bool read_all(int fd, FileBytes *file)
{
    size_t capacity = 1 << 16;
    struct stat status;
    if (fstat(fd, &status) == 0 && status.st_size > 0)
        capacity = (size_t)status.st_size + 1; /* so that the end is met without growing */
    file->bytes = allocate(capacity);
    for (file->length = 0;;) {
        if (file->length == capacity)
            file->bytes = reallocate(file->bytes, capacity *= 2);
        ssize_t got = read(fd, file->bytes + file->length, capacity - file->length);
        if (got == 0)
            return true;
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0)
            file->length += (size_t)got;
    }
}

bool file_read(const char *path, const char *what, const char *hint, FileBytes *file,
               Problem *problem)
{
    *file = (FileBytes){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return problem_set(problem, path, hint, "%s cannot be opened: %s", _(what),
                           strerror(errno));
    bool ok = read_all(fd, file);
    if (!ok) {
        problem_set(problem, path, hint, "%s cannot be read: %s", _(what), strerror(errno));
        free(file->bytes);
        *file = (FileBytes){0};
    }
    close(fd);
    return ok;
}
