/* Labs 8, 10 and 14: the members of groups. */
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
void write_group(Scenario *run, GroupName name)
{
    const Mesh *mesh = run->mesh;
    Group *const groups[AXES] = {mesh->tp, mesh->dp, mesh->pp}, *group = groups[name];
    const int ranks[AXES] = {mesh->tp_rank, mesh->dp_rank, mesh->pp_rank},
              degrees[AXES] = {mesh->tp_degree, mesh->dp_degree, mesh->pp_degree};
    if (!group)
        misuse(group_members(&run->c, name, group_rank(mesh->world)).count == 1
                   ? N_("a group of one rank is no special case: group_split makes it, too")
                   : N_("the mesh keeps what group_split returns, on every rank"),
               "mesh->%s was not made on this rank", group_names[name]);
    int size = group_size(group), place = group_rank(group);
    at(run, label_of(EXCHANGE_IN, A_GROUP, name, 0));
    double members[MAX_RANKS] = {0};
    members[place] = group_rank(mesh->world);
    group_sum(group, members, size); /* the others' places are zero here */
    memcpy(numbers(&run->stream, MEMBERS_OF, name, size), members, (size_t)size * sizeof *members);
    *numbers(&run->stream, RANK_IN, name, 1) = ranks[name];
    *numbers(&run->stream, DEGREE_OF, name, 1) = degrees[name];
}
#else
void write_expected_group(Stream *stream, const Case *c, GroupName name, int rank)
{
    const Members m = group_members(c, name, rank);
    double *members = numbers(stream, MEMBERS_OF, name, m.count);
    for (int i = 0; i < m.count; i++)
        members[i] = m.first + i * m.stride;
    *numbers(stream, RANK_IN, name, 1) = place_in(m, rank);
    *numbers(stream, DEGREE_OF, name, 1) = m.count;
}

static double sum_of_members(const Entry *entry, const double *numbers, GroupName name)
{
    const Label members = label_of(MEMBERS_OF, A_GROUP, name, 0);
    double sum = 0;
    for (int64_t i = 0; label_equal(&entry->label, &members) && i < entry->count; i++)
        sum += numbers[i];
    return sum;
}

double tp_sum_on_rank_5(int rank, const Entry *entry, const double *numbers)
{
    return rank == 5 ? sum_of_members(entry, numbers, TP) : 0;
}

double dp_sum_on_rank_5(int rank, const Entry *entry, const double *numbers)
{
    return rank == 5 ? sum_of_members(entry, numbers, DP) : 0;
}

void expect_groups(const Case *c, int rank, Stream stream)
{
    write_expected_group(&stream, c, lab_of(c->lab)->over_replicas ? DP : TP, rank);
}
#endif
