/* Writes and reads safetensors. Checks everything in a file against the file's size before use. */
#include "checkpoint/checkpoint.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/language.h"

/* The header's key that is not a tensor, and the format's name for `real`. */
#define METADATA "__metadata__"
#define DTYPE    (sizeof(real) == 4 ? "F32" : "F64")
/* The key of a tensor's checksum in the metadata is this prefix and the tensor's name. */
#define CHECKSUM "xxh3:"

Checksum checksum_of(const void *bytes, size_t count)
{
    Checksum sum;
    snprintf(sum.digits, sizeof sum.digits, "%016llx",
             (unsigned long long)XXH3_64bits(bytes, count));
    return sum;
}

/* The key of a tensor's checksum; the caller frees it. */
static char *checksum_key(const char *name)
{
    char *key;
    if (asprintf(&key, CHECKSUM "%s", name) < 0)
        abort();
    return key;
}

/* ---- writing ---- */

/* The header is written twice, because its checksums are known only at the end. */
struct SafetensorsWriter {
    Replacement *file;
    json_t *header;
    void *next; /* the header's entry of the tensor whose numbers come next */
};

json_t *shape_to_json(Shape shape)
{
    json_t *sizes = json_array();
    for (int i = 0; i < shape.rank; i++)
        json_array_append_new(sizes, json_integer(shape.size[i]));
    return sizes;
}

static void set_checksum(json_t *header, const char *name, Checksum checksum)
{
    char *key = checksum_key(name);
    json_object_set_new(json_object_get(header, METADATA), key, json_string(checksum.digits));
    free(key);
}

/* Returns a new header with the names in the order of the data; the caller releases it. */
static json_t *header_of(const SafeTensor *tensors, int count, const char *const *metadata)
{
    json_t *header = json_object(), *texts = json_object();
    for (; *metadata; metadata += 2)
        json_object_set_new(texts, metadata[0], json_string(metadata[1]));
    json_object_set_new(header, METADATA, texts);
    for (int i = 0; i < count; i++)
        set_checksum(header, tensors[i].name, checksum_of(NULL, 0)); /* a placeholder */
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        int64_t end = begin + shape_count(tensors[i].shape) * (int64_t)sizeof(real);
        json_object_set_new(header, tensors[i].name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", DTYPE, "shape",
                                      shape_to_json(tensors[i].shape), "data_offsets",
                                      (json_int_t)begin, (json_int_t)end));
        begin = end;
    }
    return header;
}

static void put_header(SafetensorsWriter *writer)
{
    char *text = json_dumps(writer->header, JSON_COMPACT);
    uint64_t length = strlen(text), padded = (length + 7) / 8 * 8;
    replacement_put(writer->file, &padded, sizeof padded);
    replacement_put(writer->file, text, length);
    replacement_put(writer->file, "       ", padded - length);
    free(text);
}

SafetensorsWriter *safetensors_begin(const char *path, const SafeTensor *tensors, int count,
                                     const char *const *metadata, Problem *problem)
{
    Replacement *file = replacement_begin(path, N_("name a file in an existing, writable folder"),
                                          N_("the tensors cannot be written: %s"), problem);
    if (!file)
        return NULL;
    SafetensorsWriter *writer = malloc(sizeof *writer);
    json_t *header = header_of(tensors, count, metadata);
    void *first = json_object_iter_next(header, json_object_iter_at(header, METADATA));
    *writer = (SafetensorsWriter){file, header, first};
    put_header(writer);
    return writer;
}

void safetensors_put(SafetensorsWriter *writer, const real *values, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof(real);
    set_checksum(writer->header, json_object_iter_key(writer->next), checksum_of(values, bytes));
    writer->next = json_object_iter_next(writer->header, writer->next);
    replacement_put(writer->file, values, bytes);
}

static void forget(SafetensorsWriter *writer)
{
    json_decref(writer->header);
    free(writer);
}

bool safetensors_end(SafetensorsWriter *writer, Problem *problem)
{
    if (!writer->file->error && fseek(writer->file->stream, 0, SEEK_SET))
        writer->file->error = errno;
    put_header(writer);
    bool good =
        replacement_end(writer->file, N_("free some space; what was written before is intact"),
                        N_("the tensors cannot be written: %s"), problem);
    forget(writer);
    return good;
}

void safetensors_drop(SafetensorsWriter *writer)
{
    replacement_drop(writer->file);
    forget(writer);
}

/* ---- reading ---- */

enum { HEADER_MAX = 100000000 }; /* the format's own limit */

static bool damaged(const Safetensors *file, Problem *problem, const char *what, const char *which)
{
    return problem_set(problem, file->path,
                       "the file is damaged or is not a safetensors file: take another copy of it",
                       "%s%s%.200s", _(what), *which ? " " : "", which);
}

static bool read_at(const Safetensors *file, void *bytes, int64_t count, int64_t from,
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
            return damaged(file, problem, N_("the file became shorter while it was read"), "");
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
        return damaged(file, problem, N_("the file is cut short: it has no header"), "");
    if (!read_at(file, &length, 8, 0, problem))
        return false;
    if (length > HEADER_MAX)
        return damaged(file, problem, N_("the file's header is not a safetensors header"), "");
    if (length > (uint64_t)file->size - 8)
        return damaged(file, problem, N_("the file is cut short within its header"), "");
    char *text = malloc(length + 1);
    json_error_t error;
    bool good = read_at(file, text, (int64_t)length, 8, problem);
    if (good) {
        file->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        good = json_is_object(file->header) ||
               damaged(file, problem, N_("the file's header is not a JSON object:"), error.text);
    }
    free(text);
    file->data = 8 + (int64_t)length;
    return good;
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

static bool read_tensor(const Safetensors *file, const char *name, json_t *entry,
                        SafeTensor *tensor, Problem *problem)
{
    const char *dtype;
    json_t *sizes;
    json_int_t begin, end;
    int64_t count = -1;
    *tensor = (SafeTensor){.name = name};
    if (!json_unpack(entry, "{s:s, s:o, s:[I, I!]}", "dtype", &dtype, "shape", &sizes,
                     "data_offsets", &begin, &end))
        count = shape_from_json(sizes, &tensor->shape);
    if (count < 0)
        return damaged(file, problem, N_("the header lacks the type, the shape or the offsets of"),
                       name);
    if (strcmp(dtype, DTYPE))
        return problem_set(problem, file->path, "a tensor must have the precision of this program",
                           "%.200s is of type %.20s", name, dtype);
    tensor->begin = begin;
    if (begin < 0 || end < begin || end - begin != count * (int64_t)sizeof(real))
        return damaged(file, problem, N_("the shape and the offsets do not match for"), name);
    return true;
}

static int by_place(const void *a, const void *b)
{
    const SafeTensor *x = a, *y = b;
    int64_t p = x->begin, q = y->begin;
    if (p == q) { /* tensors without elements come first */
        p = shape_count(x->shape);
        q = shape_count(y->shape);
    }
    return (p > q) - (p < q);
}

/* Checks that the tensors are consecutive, without gaps, and end with the file. */
static bool check_places(const Safetensors *file, Problem *problem)
{
    int64_t end = 0, there = file->size - file->data;
    for (int i = 0; i < file->count; i++) {
        if (file->tensors[i].begin != end)
            return damaged(file, problem, N_("there is a gap or an overlap before"),
                           file->tensors[i].name);
        end += shape_count(file->tensors[i].shape) * (int64_t)sizeof(real);
        if (end > there)
            return damaged(file, problem, N_("the file is cut short: it ends before the end of"),
                           file->tensors[i].name);
    }
    return end == there ||
           damaged(file, problem, N_("the file has bytes after the last tensor"), "");
}

static const char *checksum_in(const Safetensors *file, const char *name)
{
    char *key = checksum_key(name);
    const char *text = safetensors_metadata(file, key);
    free(key);
    return text;
}

/* Checks that either all tensors have a checksum or none has. */
static bool check_checksums(Safetensors *file, Problem *problem)
{
    const char *key, *lacks = NULL;
    json_t *text;
    json_object_foreach(json_object_get(file->header, METADATA), key, text)
    {
        file->has_checksums = file->has_checksums || !strncmp(key, CHECKSUM, strlen(CHECKSUM));
    }
    for (int i = 0; file->has_checksums && i < file->count; i++)
        if (!checksum_in(file, file->tensors[i].name))
            lacks = file->tensors[i].name;
    return !lacks || damaged(file, problem, N_("there is no checksum of"), lacks);
}

static bool read_tensors(Safetensors *file, Problem *problem)
{
    const char *name;
    json_t *entry;
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
    json_object_foreach(file->header, name, entry)
    {
        if (!strcmp(name, METADATA))
            continue;
        if (!read_tensor(file, name, entry, &file->tensors[file->count], problem))
            return false;
        file->count++;
    }
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_place);
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
    free(file->path);
    free(file);
}

const SafeTensor *safetensors_find(const Safetensors *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (!strcmp(file->tensors[i].name, name))
            return &file->tensors[i];
    return NULL;
}

const char *safetensors_metadata(const Safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, METADATA), key));
}

bool safetensors_read(const Safetensors *file, const SafeTensor *tensor, real *values,
                      Problem *problem)
{
    const int64_t bytes = shape_count(tensor->shape) * (int64_t)sizeof(real);
    if (!read_at(file, values, bytes, file->data + tensor->begin, problem))
        return false;
    return !file->has_checksums ||
           !strcmp(checksum_of(values, (size_t)bytes).digits, checksum_in(file, tensor->name)) ||
           damaged(file, problem, N_("the numbers do not match their checksum: those of"),
                   tensor->name);
}
