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
        fprintf(stderr,
                _("error: out of memory: cannot allocate %zu bytes\n"
                  "  HINT: close other programs, or use less data\n"),
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

int64_t line_breaks(const char *bytes, size_t length)
{
    int64_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += bytes[i] == '\n';
    return count;
}

void place_in_text(char *place, const Text *text, size_t at)
{
    place_in_file(place, text->path, 0, text->line + line_breaks(text->bytes, at));
}

void skip_bom(const char **bytes, size_t *length)
{
    if (*length >= 3 && memcmp(*bytes, "\xEF\xBB\xBF", 3) == 0) {
        *bytes += 3;
        *length -= 3;
    }
}

bool is_compressed(const char *bytes, size_t length)
{
    return length > 1 && !memcmp(bytes, "\x1F\x8B", 2);
}

const char *hint_to_convert(const char *text, size_t length)
{
    if (length > 1 && (!memcmp(text, "\xFF\xFE", 2) || !memcmp(text, "\xFE\xFF", 2)))
        return N_("the text is in UTF-16: convert it with iconv -f utf-16 -t utf-8");
    if (is_compressed(text, length))
        return N_("the file is compressed: unpack it with gunzip");
    return N_("convert the text to UTF-8, for example with iconv -f latin1 -t utf-8");
}

bool utf8_check(Text text, Problem *problem)
{
    const size_t valid = utf8_valid_length(text.bytes, text.length);
    if (valid == text.length)
        return true;
    const char *newline = memrchr(text.bytes, '\n', valid);
    const size_t begin = newline ? (size_t)(newline - text.bytes) + 1 : 0;
    char place[PLACE_SIZE];
    place_in_text(place, &text, valid);
    return problem_set(problem, place, hint_to_convert(text.bytes, text.length),
                       "the text is not valid UTF-8: byte 0x%02X at byte %zu of the line",
                       (unsigned)(unsigned char)text.bytes[valid], valid - begin + 1);
}

static double memory_of_machine(void)
{
    return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

/* Opens a file that must fit into memory. Returns -1 with `problem` on failure. */
static int open_whole(const char *path, const char *what, const char *hint, size_t *size,
                      Problem *problem)
{
    const char *reason;
    int fd = file_open(path, &reason);
    if (fd < 0) {
        problem_set(problem, path, hint, "%s cannot be opened: %s", _(what), reason);
        return -1;
    }
    const off_t end = lseek(fd, 0, SEEK_END);
    *size = (size_t)end;
    if ((double)end < memory_of_machine())
        return fd;
    problem_set(problem, path, hint,
                "%s cannot be read: %.0f GB is more than this machine's memory", _(what),
                (double)end / 1e9);
    close(fd);
    return -1;
}

/* Reads up to `size` bytes at `begin`, fewer only at the end of the file. Returns how many; or -1
 * with `problem`. */
static ssize_t read_part(int fd, size_t begin, size_t size, char *bytes, const char *path,
                         const char *what, const char *hint, Problem *problem)
{
    size_t length = 0;
    ssize_t got = 0;
    while (length < size &&
           (got = pread(fd, bytes + length, size - length, (off_t)(begin + length))) > 0)
        length += (size_t)got;
    if (got >= 0)
        return (ssize_t)length;
    problem_set(problem, path, hint, "%s cannot be read: %s", _(what), strerror(errno));
    return -1;
}

bool file_read(const char *path, const char *what, const char *hint, FileBytes *file,
               Problem *problem)
{
    *file = (FileBytes){0};
    size_t size;
    const int fd = open_whole(path, what, hint, &size, problem);
    if (fd < 0)
        return false;
    char *bytes = allocate(size);
    const ssize_t got = read_part(fd, 0, size, bytes, path, what, hint, problem);
    close(fd);
    if (got >= 0)
        *file = (FileBytes){bytes, (size_t)got};
    else
        free(bytes);
    return got >= 0;
}

bool file_checksum(const char *path, const char *what, const char *hint, XXH128_hash_t *sum,
                   Problem *problem)
{
    enum { BLOCK = 1 << 20 };
    size_t size, begin = 0;
    const int fd = open_whole(path, what, hint, &size, problem);
    if (fd < 0)
        return false;
    char *bytes = allocate(BLOCK);
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        abort();
    XXH3_128bits_reset(state);
    ssize_t got;
    while ((got = read_part(fd, begin, BLOCK, bytes, path, what, hint, problem)) > 0) {
        XXH3_128bits_update(state, bytes, (size_t)got);
        begin += (size_t)got;
    }
    *sum = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    free(bytes);
    close(fd);
    return got == 0;
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
