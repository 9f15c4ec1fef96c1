/* Memory, whole files, locations in them, and folders. */
#include "data/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

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

bool utf8_check(const char *path, int64_t line, const char *text, size_t length, Problem *problem)
{
    const size_t valid = utf8_valid_length(text, length);
    if (valid == length)
        return true;
    size_t begin = 0;
    for (size_t i = 0; i < valid; i++)
        if (text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    char place[PLACE_SIZE];
    place_in_file(place, path, 0, line);
    return problem_set(problem, place,
                       "convert the text, for example with iconv -f latin1 -t utf-8",
                       "the text is not valid UTF-8: byte 0x%02X at byte %zu of the line",
                       (unsigned)(unsigned char)text[valid], valid - begin + 1);
}

static double memory_of_machine(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

bool file_read(const char *path, const char *what, const char *hint, FileBytes *file,
               Problem *problem)
{
    *file = (FileBytes){0};
    const char *reason;
    int fd = file_open(path, &reason);
    if (fd < 0)
        return problem_set(problem, path, hint, "%s cannot be opened: %s", _(what), reason);
    const off_t size = lseek(fd, 0, SEEK_END);
    bool ok = (double)size < memory_of_machine() ||
              problem_set(problem, path, hint,
                          "%s cannot be read: %.0f GB are more than this machine's memory", _(what),
                          (double)size / 1e9);
    if (ok) {
        file->bytes = allocate((size_t)size);
        ssize_t got = 0;
        while (file->length < (size_t)size &&
               (got = pread(fd, file->bytes + file->length, (size_t)size - file->length,
                            (off_t)file->length)) > 0)
            file->length += (size_t)got;
        ok = got >= 0 ||
             problem_set(problem, path, hint, "%s cannot be read: %s", _(what), strerror(errno));
    }
    if (!ok) {
        free(file->bytes);
        file->bytes = NULL;
    }
    close(fd);
    return ok;
}

bool folder_make(const char *folder, Problem *problem)
{
    char *path = strcpy(allocate(strlen(folder) + 1), folder);
    for (char *at = path; *at; at++) {
        if (*at != '/' || at == path)
            continue;
        *at = '\0';
        mkdir(path, 0777); /* the last result decides */
        *at = '/';
    }
    free(path);
    struct stat status;
    if (mkdir(folder, 0777) == 0)
        return true;
    int error = errno;
    if (stat(folder, &status) == 0 && S_ISDIR(status.st_mode))
        return true;
    return problem_set(problem, folder, "name a writable folder",
                       "the cache folder cannot be created: %s", strerror(error));
}
