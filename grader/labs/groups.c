/* Labs 8 and 10: who is in a group. */
#include "grader/labs/groups.h"

#include <stdio.h>

#include "base/run.h"

void groups_name(char text[NAME_SIZE], const char *what, const char *name)
{
    snprintf(text, NAME_SIZE, "%s of the %s group", what, name);
}

#ifndef BALISE_DOUBLE
static double *numbers(Play *play, const char *what, const char *name, int64_t count)
{
    char text[NAME_SIZE];
    double *values;
    groups_name(text, what, name);
    stream_entry(&play->stream, VALUES, GROUPS, text, count, &values)->shape = SHAPE(count);
    for (int64_t i = 0; i < count; i++)
        values[i] = 0;
    return values;
}

void write_group(Play *play, const char *name, Group *group, int rank, int degree)
{
    if (!group)
        misuse("group_split makes it, on every rank", "mesh->%s was not made on this rank", name);
    int size = group_size(group), place = group_rank(group);
    at(play, "exchange in the %s group", name);
    double *members = numbers(play, "members", name, size);
    members[place] = group_rank(play->mesh->world);
    group_sum(group, members, size); /* the others' places are zero here */
    *numbers(play, "rank", name, 1) = rank;
    *numbers(play, "degree", name, 1) = degree;
}
#else
Members tp_group(const Case *c, int rank)
{
    return (Members){rank / c->tp * c->tp, 1, c->tp};
}

Members dp_group(const Case *c, int rank)
{
    return (Members){rank % c->tp, c->tp, c->world / c->tp};
}

static void write_one(Stream *stream, const char *what, const char *name, Members m, int only)
{
    char text[NAME_SIZE];
    double *values;
    int64_t count = only < 0 ? m.count : 1;
    groups_name(text, what, name);
    stream_entry(stream, VALUES, GROUPS, text, count, &values)->shape = SHAPE(count);
    for (int64_t i = 0; i < count; i++)
        values[i] = only < 0 ? m.first + (double)i * m.stride : only;
}

static void write_expected(Stream *stream, const char *name, Members m, int rank)
{
    write_one(stream, "members", name, m, -1);
    write_one(stream, "rank", name, m, (rank - m.first) / m.stride);
    write_one(stream, "degree", name, m, m.count);
}

void expect_groups(const Case *c, int rank, int mistake, Stream stream)
{
    if (lab_of(c->lab)->over_replicas)
        write_expected(&stream, "dp", dp_group(c, rank), rank);
    write_expected(&stream, "tp", tp_group(c, rank), rank);
}
#endif
