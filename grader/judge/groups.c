/* Labs 8 and 10: who must be in the groups of a rank, and what a wrong group most likely is. */
#include <stdio.h>
#include <string.h>

#include "grader/judge/evidence.h"
#include "grader/judge/plays.h"
#include "grader/plays/groups.h"

/* The ranks of a group in order: first, first + stride, ... */
typedef struct Members {
    int first, stride, count;
} Members;

static Members tp_group(const Case *c, int rank)
{
    return (Members){rank / c->tp * c->tp, 1, c->tp};
}

static Members dp_group(const Case *c, int rank)
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

void expect_groups(const Case *c, int rank, int suspect, Stream stream)
{
    if (c->lab == 10)
        write_expected(&stream, "dp", dp_group(c, rank), rank);
    write_expected(&stream, "tp", tp_group(c, rank), rank);
}

/* ---- causes --------------------------------------------------------------------------------------------- */

static bool are(const Entry *got, Members m)
{
    if (got->count != m.count)
        return false;
    for (int64_t i = 0; i < got->count; i++)
        if (numbers_of(got)[i] != m.first + (double)i * m.stride)
            return false;
    return true;
}

static bool same_set(const Entry *got, const Entry *want)
{
    int64_t found = 0;
    for (int64_t i = 0; i < got->count; i++)
        for (int64_t k = 0; k < want->count; k++)
            found += numbers_of(got)[i] == numbers_of(want)[k];
    return got->count == want->count && found == want->count;
}

static const char *wrong_members(const Case *c, int rank, bool is_dp, const Entry *got, const Entry *want)
{
    int groups = c->world / c->tp;
    if (same_set(got, want))
        return "the members are right, but in another order: the key decides it";
    if (are(got, (Members){0, 1, c->world}))
        return is_dp ? "ranks holding different pieces of the weights are averaged together: the group is "
                       "the world"
                     : "the group contains ranks of another replica: it is the world";
    if (!is_dp && c->lab == 10)
        return "after the second group was made, the first one changed";
    if (is_dp && got->count == 1)
        return "the averaging group has a single member: replicas never exchange anything";
    if (is_dp && are(got, tp_group(c, rank)))
        return "the ranks grouped for averaging hold different pieces of the weights: this is the tp group "
               "again";
    if (!is_dp && are(got, (Members){rank % groups, groups, c->tp}))
        return "the ranks of a group are not neighbours";
    return is_dp ? "the group is not made of the ranks that hold the same piece of the weights"
                 : "the group is not made of tp consecutive ranks";
}

static const char *wrong_place(const Case *c, int rank, bool is_dp, const char *name, double is)
{
    bool is_rank = !strncmp(name, "rank", 4);
    int tp_rank = rank % c->tp;
    if (is_rank && is_dp && is == tp_rank)
        return "two ranks of the same replica believe to be different replicas: this is the tp_rank";
    if (is_rank && is == rank)
        return "the rank number is that of the world: it exceeds the size of its group";
    if (!is_rank && is == c->world)
        return "the degree is that of the world, not of the group that was made";
    return is_rank ? "it is not this rank's place in the group" : "it is not the size of the group";
}

bool group_is_wrong(const Evidence *e, char *text, size_t size)
{
    const Case *c = e->trial->c;
    if (e->want->check != GROUPS || e->got->count < 1)
        return false;
    bool is_dp = strstr(e->want->name, "the dp group") != NULL;
    bool members = !strncmp(e->want->name, "members", 7);
    snprintf(text, size, "%s",
             members ? wrong_members(c, e->trial->rank, is_dp, e->got, e->want)
                     : wrong_place(c, e->trial->rank, is_dp, e->want->name, numbers_of(e->got)[0]));
    return true;
}
