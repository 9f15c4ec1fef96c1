/* Labs 8 and 10: the members of groups. */
#include "grader/labs/groups.h"

#include "base/run.h"

static double *numbers(Stream *stream, What what, GroupName name, int64_t count)
{
    double *values;
    stream_entry(stream, VALUES, GROUPS, label_of(what, A_GROUP, name, 0), count, &values)->shape =
        SHAPE(count);
    memset(values, 0, (size_t)count * sizeof *values);
    return values;
}

#ifndef BALISE_DOUBLE
void write_group(Scenario *run, GroupName name, Group *group, int rank, int degree)
{
    if (!group)
        misuse("group_split makes it, on every rank", "mesh->%s was not made on this rank",
               name == TP ? "tp" : "dp");
    int size = group_size(group), place = group_rank(group);
    at(run, label_of(EXCHANGE_IN, A_GROUP, name, 0));
    double members[MAX_RANKS] = {0};
    members[place] = group_rank(run->mesh->world);
    group_sum(group, members, size); /* the others' places are zero here */
    memcpy(numbers(&run->stream, MEMBERS_OF, name, size), members, (size_t)size * sizeof *members);
    *numbers(&run->stream, RANK_IN, name, 1) = rank;
    *numbers(&run->stream, DEGREE_OF, name, 1) = degree;
}
#else
Members dp_group(const Case *c, int rank)
{
    return (Members){rank % c->tp, c->tp, c->world / c->tp};
}

static void write_expected(Stream *stream, GroupName name, Members m, int rank)
{
    double *members = numbers(stream, MEMBERS_OF, name, m.count);
    for (int i = 0; i < m.count; i++)
        members[i] = m.first + i * m.stride;
    *numbers(stream, RANK_IN, name, 1) = place_in(m, rank);
    *numbers(stream, DEGREE_OF, name, 1) = m.count;
}

double sum_of_members(const Entry *entry, const double *numbers, GroupName name)
{
    const Label members = label_of(MEMBERS_OF, A_GROUP, name, 0);
    double sum = 0;
    for (int64_t i = 0; label_equal(&entry->label, &members) && i < entry->count; i++)
        sum += numbers[i];
    return sum;
}

void expect_groups(const Case *c, int rank, int mistake, Stream stream)
{
    const bool dp = lab_of(c->lab)->over_replicas;
    write_expected(&stream, dp ? DP : TP, dp ? dp_group(c, rank) : tp_group(c, rank), rank);
}
#endif
