/* Labs 8 and 10: who is in a group. */
#include "grader/labs/groups.h"

#include "base/run.h"

#ifndef BALISE_DOUBLE
static double *numbers(Scenario *run, What what, GroupName name, int64_t count)
{
    double *values;
    stream_entry(&run->stream, VALUES, GROUPS, label_of(what, A_GROUP, name, 0), count, &values)
        ->shape = SHAPE(count);
    for (int64_t i = 0; i < count; i++)
        values[i] = 0;
    return values;
}

void write_group(Scenario *run, GroupName name, Group *group, int rank, int degree)
{
    if (!group)
        misuse("group_split makes it, on every rank", "mesh->%s was not made on this rank",
               name == TP ? "tp" : "dp");
    int size = group_size(group), place = group_rank(group);
    at(run, label_of(EXCHANGE_IN, A_GROUP, name, 0));
    double *members = numbers(run, MEMBERS_OF, name, size);
    members[place] = group_rank(run->mesh->world);
    group_sum(group, members, size); /* the others' places are zero here */
    *numbers(run, RANK_IN, name, 1) = rank;
    *numbers(run, DEGREE_OF, name, 1) = degree;
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

static void write_one(Stream *stream, What what, GroupName name, Members m, int only)
{
    double *values;
    int64_t count = only < 0 ? m.count : 1;
    stream_entry(stream, VALUES, GROUPS, label_of(what, A_GROUP, name, 0), count, &values)->shape =
        SHAPE(count);
    for (int64_t i = 0; i < count; i++)
        values[i] = only < 0 ? m.first + (double)i * m.stride : only;
}

static void write_expected(Stream *stream, GroupName name, Members m, int rank)
{
    write_one(stream, MEMBERS_OF, name, m, -1);
    write_one(stream, RANK_IN, name, m, (rank - m.first) / m.stride);
    write_one(stream, DEGREE_OF, name, m, m.count);
}

void expect_groups(const Case *c, int rank, int mistake, Stream stream)
{
    if (lab_of(c->lab)->over_replicas)
        write_expected(&stream, DP, dp_group(c, rank), rank);
    write_expected(&stream, TP, tp_group(c, rank), rank);
}
#endif
