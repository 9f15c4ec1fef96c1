/* Opens safetensors. Checks everything in a file against the file's size before use. */
#include "checkpoint/safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/file.h"
#include "base/language.h"

enum { HEADER_MAX = 100000000 }; /* the format's own limit */

bool safetensors_damaged(const Safetensors *file, Problem *problem, const char *what,
                         const char *which)
{
    return problem_set(problem, file->path,
                       "the file is damaged or is not a safetensors file: use another copy of it",
                       "%s%s%s", _(what), *which ? " " : "", clean_name(which).text);
}

bool safetensors_bytes(const Safetensors *file, void *bytes, int64_t count, int64_t from,
                       Problem *problem)
{
    char *at = bytes;
    while (count > 0) {
        ssize_t got = pread(file->fd, at, (size_t)count, from);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return problem_set(problem, file->path, "check the disk", "the file cannot be read: %s",
                               strerror(errno));
        if (got == 0)
            return safetensors_damaged(file, problem,
                                       N_("the file became shorter while it was read"), "");
        at += got;
        from += got;
        count -= got;
    }
    return true;
}

static bool read_header(Safetensors *file, Problem *problem)
{
    uint64_t length = 0;
    if (file->size < 8)
        return safetensors_damaged(file, problem, N_("the file is cut short: it has no header"),
                                   "");
    if (!safetensors_bytes(file, &length, 8, 0, problem))
        return false;
    if (length > HEADER_MAX)
        return safetensors_damaged(file, problem,
                                   N_("the file's header is not a safetensors header"), "");
    if (length > (uint64_t)file->size - 8)
        return safetensors_damaged(file, problem, N_("the file is cut short within its header"),
                                   "");
    char *text = calloc(1, length + 1);
    json_error_t error;
    bool good = safetensors_bytes(file, text, (int64_t)length, 8, problem);
    if (good) {
        file->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        good = json_is_object(file->header) ||
               safetensors_damaged(file, problem, N_("the file's header is not a JSON object:"),
                                   file->header ? text : error.text);
    }
    free(text);
    file->data = 8 + (int64_t)length;
    return good;
}

json_t *json_from_file(const char *path, char reason[REASON_SIZE])
{
    json_error_t error;
    const char *why;
    const int fd = file_open_text(path, &why);
    struct stat found = {0};
    if (fd < 0) {
        snprintf(reason, REASON_SIZE, "%s", why);
        return NULL;
    }
    FILE *file = fdopen(fd, "r");
    fstat(fd, &found);
    json_t *json = NULL;
    if (found.st_size > MOST_JSON) {
        snprintf(reason, REASON_SIZE, _("the file is larger than %d MB"), MOST_JSON >> 20);
    } else {
        json = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
        snprintf(reason, REASON_SIZE, "%s", error.text);
        clean_line(reason);
    }
    fclose(file);
    return json;
}

int64_t shape_from_json(const json_t *sizes, Shape *shape)
{
    const int ranks = (int)(sizeof shape->size / sizeof *shape->size);
    int64_t count = 1;
    if (!json_is_array(sizes) || json_array_size(sizes) > (size_t)ranks)
        return -1;
    *shape = (Shape){.rank = (int)json_array_size(sizes)};
    for (int i = 0; i < shape->rank; i++) {
        const json_t *size = json_array_get(sizes, (size_t)i);
        shape->size[i] = json_integer_value(size);
        if (!json_is_integer(size) || shape->size[i] < 0 ||
            __builtin_mul_overflow(count, shape->size[i], &count) ||
            count > INT64_MAX / (int64_t)sizeof(real))
            return -1;
    }
    return count;
}

/* The size of a number of this type in bytes, or 0 for a type that is not known here. */
static int64_t size_of(const char *dtype)
{
    static const struct {
        const char *dtype;
        int size;
    } types[] = {{"F64", 8},  {"I64", 8}, {"U64", 8},  {"F32", 4}, {"I32", 4},
                 {"U32", 4},  {"F16", 2}, {"BF16", 2}, {"I16", 2}, {"U16", 2},
                 {"BOOL", 1}, {"I8", 1},  {"U8", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(dtype, types[i].dtype))
            return types[i].size;
    return 0;
}

static bool read_tensor(const Safetensors *file, const char *name, json_t *entry,
                        SafeTensor *tensor, Problem *problem)
{
    json_t *sizes;
    json_int_t begin, end;
    int64_t count = -1, bytes;
    *tensor = (SafeTensor){.name = name};
    if (!json_unpack(entry, "{s:s, s:o, s:[I, I!]}", "dtype", &tensor->dtype, "shape", &sizes,
                     "data_offsets", &begin, &end))
        count = shape_from_json(sizes, &tensor->shape);
    if (count < 0)
        return safetensors_damaged(
            file, problem, N_("the header lacks the type, the shape or the offsets of"), name);
    const int64_t size = size_of(tensor->dtype);
    if (begin < 0 || end < begin || __builtin_mul_overflow(count, size, &bytes) ||
        (size > 0 && end - begin != bytes))
        return safetensors_damaged(file, problem, N_("the shape and the offsets do not match for"),
                                   name);
    tensor->begin = begin;
    tensor->bytes = end - begin;
    return true;
}

static int by_place(const void *a, const void *b)
{
    const SafeTensor *x = a, *y = b;
    int64_t p = x->begin, q = y->begin;
    if (p == q) { /* at the same offset, tensors without elements come first */
        p = x->bytes;
        q = y->bytes;
    }
    return (p > q) - (p < q);
}

/* Checks that the tensors are consecutive, without gaps, and end with the file. */
static bool check_places(const Safetensors *file, Problem *problem)
{
    int64_t end = 0, there = file->size - file->data;
    for (int i = 0; i < file->count; i++) {
        if (file->tensors[i].begin != end)
            return safetensors_damaged(file, problem, N_("there is a gap or an overlap before"),
                                       file->tensors[i].name);
        end += file->tensors[i].bytes;
        if (end > there)
            return safetensors_damaged(file, problem,
                                       N_("the file is cut short: it ends before the end of"),
                                       file->tensors[i].name);
    }
    return end == there ||
           safetensors_damaged(file, problem, N_("the file has bytes after the last tensor"), "");
}

const char *safetensors_checksum(const Safetensors *file, const char *name)
{
    char *key;
    if (asprintf(&key, SAFETENSORS_CHECKSUM "%s", name) < 0)
        abort();
    const char *text = safetensors_metadata(file, key);
    free(key);
    return text;
}

/* Checks that either all tensors have a checksum or none has. */
static bool check_checksums(Safetensors *file, Problem *problem)
{
    const char *key, *lacks = NULL;
    json_t *text;
    json_object_foreach(json_object_get(file->header, SAFETENSORS_METADATA), key, text)
    {
        file->has_checksums = file->has_checksums ||
                              !strncmp(key, SAFETENSORS_CHECKSUM, strlen(SAFETENSORS_CHECKSUM));
    }
    for (int i = 0; file->has_checksums && i < file->count; i++)
        if (!safetensors_checksum(file, file->tensors[i].name))
            lacks = file->tensors[i].name;
    return !lacks || safetensors_damaged(file, problem, N_("there is no checksum of"), lacks);
}

static int by_name(const void *a, const void *b)
{
    const SafeTensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void sort_names(Safetensors *file)
{
    file->by_name = calloc((size_t)file->count + 1, sizeof *file->by_name);
    for (int i = 0; i < file->count; i++)
        file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, (size_t)file->count, sizeof *file->by_name, by_name);
}

static bool read_tensors(Safetensors *file, Problem *problem)
{
    const char *name;
    json_t *entry;
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
    json_object_foreach(file->header, name, entry)
    {
        if (!strcmp(name, SAFETENSORS_METADATA))
            continue;
        if (!read_tensor(file, name, entry, &file->tensors[file->count], problem))
            return false;
        file->count++;
    }
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_place);
    sort_names(file);
    return check_places(file, problem) && check_checksums(file, problem);
}

Safetensors *safetensors_open(const char *path, Problem *problem)
{
    const char *reason;
    int fd = file_open(path, &reason);
    if (fd < 0) {
        problem_set(problem, path, "check the path", "the tensors cannot be opened: %s", reason);
        return NULL;
    }
    Safetensors *file = calloc(1, sizeof *file);
    *file = (Safetensors){.fd = fd, .path = strdup(path), .size = lseek(fd, 0, SEEK_END)};
    if (read_header(file, problem) && read_tensors(file, problem))
        return file;
    safetensors_close(file);
    return NULL;
}

void safetensors_close(Safetensors *file)
{
    close(file->fd);
    json_decref(file->header);
    free(file->tensors);
    free(file->by_name);
    free(file->path);
    free(file);
}

const SafeTensor *safetensors_find(const Safetensors *file, const char *name)
{
    const SafeTensor wanted = {.name = name}, *const key = &wanted;
    const SafeTensor *const *found =
        bsearch(&key, file->by_name, (size_t)file->count, sizeof *file->by_name, by_name);
    return found ? *found : NULL;
}

const char *safetensors_metadata(const Safetensors *file, const char *key)
{
    return json_string_value(
        json_object_get(json_object_get(file->header, SAFETENSORS_METADATA), key));
}
