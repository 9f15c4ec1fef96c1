/* Writes safetensors. */
#include "checkpoint/safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/language.h"

/* The format's name for `real`. */
#define DTYPE (sizeof(real) == 4 ? "F32" : "F64")

Checksum checksum_of(const void *bytes, size_t count)
{
    Checksum sum;
    snprintf(sum.digits, sizeof sum.digits, "%016llx",
             (unsigned long long)XXH3_64bits(bytes, count));
    return sum;
}

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
    char *key;
    if (asprintf(&key, SAFETENSORS_CHECKSUM "%s", name) < 0)
        abort();
    json_object_set_new(json_object_get(header, SAFETENSORS_METADATA), key,
                        json_string(checksum.digits));
    free(key);
}

/* Returns a new header with the names in the order of the data; the caller releases it. */
static json_t *header_of(const SafeTensor *tensors, int count, const char *const *metadata)
{
    json_t *header = json_object(), *texts = json_object();
    for (; *metadata; metadata += 2)
        json_object_set_new(texts, metadata[0], json_string(metadata[1]));
    json_object_set_new(header, SAFETENSORS_METADATA, texts);
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
                                     const char *const *metadata, const OutputKind *kind,
                                     Problem *problem)
{
    Replacement *file =
        replacement_begin(path, kind, N_("name a file in an existing, writable folder"),
                          N_("the tensors cannot be written: %s"), problem);
    if (!file)
        return NULL;
    SafetensorsWriter *writer = malloc(sizeof *writer);
    json_t *header = header_of(tensors, count, metadata);
    void *first = json_object_iter_next(header, json_object_iter_at(header, SAFETENSORS_METADATA));
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
