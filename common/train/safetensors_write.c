#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/safetensors.h"
#include "train/safetensors_format.h"

struct SafetensorsWriter {
    FILE *stream;
    char *path;
    int error; /* the first errno */
};

static json_t *description(const SafeTensor *tensor, int64_t begin, int64_t end)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->shape.rank; i++)
        json_array_append_new(shape, json_integer(tensor->shape.size[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", SAFETENSORS_DTYPE, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

/* The caller's. Names stand in the order of the data. */
static char *header_of(const SafeTensor *tensors, int count, const char *const *metadata)
{
    json_t *header = json_object(), *texts = json_object();
    for (; *metadata; metadata += 2)
        json_object_set_new(texts, metadata[0], json_string(metadata[1]));
    json_object_set_new(header, SAFETENSORS_METADATA, texts);
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        int64_t end = begin + shape_count(tensors[i].shape) * (int64_t)sizeof(real);
        json_object_set_new(header, tensors[i].name, description(&tensors[i], begin, end));
        begin = end;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

static void put_bytes(SafetensorsWriter *writer, const void *bytes, size_t count)
{
    if (!writer->error && fwrite(bytes, 1, count, writer->stream) != count)
        writer->error = errno;
}

SafetensorsWriter *safetensors_begin(const char *path, const SafeTensor *tensors, int count,
                                     const char *const *metadata, Problem *problem)
{
    FILE *stream = fopen(path, "we");
    if (!stream) {
        problem_set(problem, path, "name a file in a folder that exists and can be written",
                    "the tensors cannot be written: %s", strerror(errno));
        return NULL;
    }
    SafetensorsWriter *writer = malloc(sizeof *writer);
    *writer = (SafetensorsWriter){stream, strdup(path), 0};
    char *header = header_of(tensors, count, metadata);
    uint64_t length = strlen(header), padded = (length + 7) / 8 * 8;
    put_bytes(writer, &padded, sizeof padded);
    put_bytes(writer, header, length);
    put_bytes(writer, "       ", padded - length);
    free(header);
    return writer;
}

void safetensors_put(SafetensorsWriter *writer, const real *values, int64_t count)
{
    put_bytes(writer, values, (size_t)count * sizeof(real));
}

bool safetensors_end(SafetensorsWriter *writer, Problem *problem)
{
    if (!writer->error && (fflush(writer->stream) || fsync(fileno(writer->stream))))
        writer->error = errno;
    if (fclose(writer->stream) && !writer->error)
        writer->error = errno;
    int error = writer->error;
    if (error) {
        unlink(writer->path);
        problem_set(problem, writer->path, "free some space; what was written before is untouched",
                    "the tensors cannot be written: %s", strerror(error));
    }
    free(writer->path);
    free(writer);
    return !error;
}
