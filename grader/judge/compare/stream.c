/* The entries of a stream, in order. */
#include <stdarg.h>
#include <stdlib.h>

#include "grader/judge/compare/expected.h"

void give_up(const Problem *problem)
{
    fflush(stdout);
    problem_print(stderr, problem);
    exit(2);
}

void give_up_with(const char *hint, const char *format, ...)
{
    char what[sizeof(((Problem *)0)->what)];
    Problem problem;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    problem_set(&problem, NULL, hint, "%s", what);
    give_up(&problem);
}

/* A rank may write anything, so the product of the sizes must not overflow. */
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

const Entry *next_entry(Entries in, const Entry *last)
{
    const int64_t unit = sizeof(double), head = sizeof(Entry);
    int64_t at = last ? (const char *)(last + 1) - in.base + last->count * unit : in.begin;
    if (at < 0 || at % unit || in.end - at < head)
        return NULL;
    const Entry *entry = (const Entry *)(in.base + at);
    bool sound = entry->count >= 0 && entry->count <= (in.end - at - head) / unit;
    return sound && is_shape(entry->shape) ? entry : NULL;
}

const Entry *find_entry(Entries in, int kind, Label label)
{
    for (const Entry *entry = NULL; (entry = next_entry(in, entry));)
        if (entry->kind == kind && label_equal(&entry->label, &label))
            return entry;
    return NULL;
}

const Entry *first_entry(Entries in, int kind)
{
    for (const Entry *entry = NULL; (entry = next_entry(in, entry));)
        if (entry->kind == kind)
            return entry;
    return NULL;
}

const Problem *problem_of(const Entry *entry)
{
    return entry && (size_t)entry->count * sizeof(double) >= sizeof(Problem)
               ? (const Problem *)numbers_of(entry)
               : NULL;
}
