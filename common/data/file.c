/* Memory, whole files, and locations in them. */
#include "data/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Doubles the buffer until it contains the end: a pipe has no known size. */
static bool read_all(FILE *stream, FileBytes *file)
{
    for (size_t room = 1 << 16;; room *= 2) {
        file->bytes = reallocate(file->bytes, room);
        file->length += fread(file->bytes + file->length, 1, room - file->length, stream);
        if (file->length < room)
            return !ferror(stream);
    }
}

bool file_read(const char *path, const char *what, const char *hint, FileBytes *file,
               Problem *problem)
{
    *file = (FileBytes){0};
    FILE *stream = fopen(path, "re");
    if (!stream)
        return problem_set(problem, path, hint, "%s cannot be opened: %s", _(what),
                           strerror(errno));
    bool ok = read_all(stream, file);
    if (!ok) {
        problem_set(problem, path, hint, "%s cannot be read: %s", _(what), strerror(errno));
        free(file->bytes);
        file->bytes = NULL;
    }
    fclose(stream);
    return ok;
}
