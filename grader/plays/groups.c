#include "grader/plays/groups.h"

#include <stdio.h>

#include "base/run.h"

void groups_name(char text[NAME_SIZE], const char *what, const char *name)
{
    snprintf(text, NAME_SIZE, "%s of the %s group", what, name);
}

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
