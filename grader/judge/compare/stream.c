/* The entries of a stream, one after the other. */
#include "grader/judge/compare/expected.h"

/* A rank may write anything: the product of the sizes must not overflow. */
static bool is_shape(Shape shape)
{
    int64_t count = 1;
    if (shape.rank < 0 || shape.rank > 4)
        return false;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.size[i] < 0 || shape.size[i] > STREAM_BYTES || count > STREAM_BYTES)
            return false;
        count *= shape.size[i];
    }
    return true;
}

const Entry *next_entry(const char *base, int64_t used, int64_t *offset)
{
    int64_t left = used - *offset;
    if (*offset < 0 || *offset % (int64_t)sizeof(double) || left < (int64_t)sizeof(Entry))
        return NULL;
    const Entry *entry = (const Entry *)(base + *offset);
    int64_t room = (left - (int64_t)sizeof(Entry)) / (int64_t)sizeof(double);
    if (entry->count < 0 || entry->count > room || !is_shape(entry->shape))
        return NULL;
    *offset += (int64_t)sizeof(Entry) + entry->count * (int64_t)sizeof(double);
    return entry;
}

const Entry *find_entry(const char *base, int64_t used, int kind, Label label, int64_t *offset)
{
    const Entry *entry;
    while ((entry = next_entry(base, used, offset)))
        if (entry->kind == kind && label_equal(&entry->label, &label))
            return entry;
    return NULL;
}
