/* Labs 8 and 10: explains a wrong group. Lab 14 has the same sentences for some mistakes. */
#include "grader/labs/shared/wrong_groups.h"

bool has_members(const Entry *got, Members m)
{
    if (got->count != m.count)
        return false;
    for (int64_t i = 0; i < got->count; i++)
        if (numbers_of(got)[i] != m.first + (double)i * m.stride)
            return false;
    return true;
}

bool same_set(const Entry *got, const Entry *want)
{
    int64_t found = 0;
    for (int64_t i = 0; i < got->count; i++)
        for (int64_t k = 0; k < want->count; k++)
            found += numbers_of(got)[i] == numbers_of(want)[k];
    return got->count == want->count && found == want->count;
}

/* Does every rank have a group of its own? */
static bool all_single(const Trial *t, Label label)
{
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, VALUES, label);
        if (!got || got->count != 1)
            return false;
    }
    return true;
}

/* Fills in the divisor in a (translated) sentence about ranks that have the same remainder. */
static const char *of_remainder(const char *sentence, int divisor)
{
    static char text[300];
    snprintf(text, sizeof text, sentence, divisor);
    return text;
}

/* The ranks whose calls made this communicator, as bits. */
static uint64_t members_made(const Trial *t, uint64_t made)
{
    const Calls *calls = t->outcome->calls;
    uint64_t members = 0;
    for (int rank = 0; rank < t->c->world; rank++)
        for (int64_t i = 0; i < calls->rank[rank].count; i++)
            members |= (uint64_t)(calls->rank[rank].call[i].made == made) << rank;
    return members;
}

static uint64_t everyone(const Trial *t)
{
    return ((uint64_t)1 << t->c->world) - 1;
}

/* Has a split of the lab's given all ranks the same communicator? */
static bool all_in_one(const Trial *t)
{
    const RankCalls *mine = t->outcome->calls ? &t->outcome->calls->rank[t->rank] : NULL;
    for (int64_t i = 0; mine && i < mine->count; i++)
        if (!strcmp(mine->call[i].name, "split") && line_of(mine->call[i].address)[0] &&
            members_made(t, mine->call[i].made) == everyone(t))
            return true;
    return false;
}

static const char *wrong_tp_members(const Trial *t, const Entry *got)
{
    const Case *c = t->c;
    const int rank = t->rank, groups = c->world / c->tp;
    if (has_members(got, (Members){0, 1, c->world}))
        return all_in_one(t)
                   ? _("the group contains ranks of another replica: all ranks pass the same color")
                   : _("the group contains ranks of another replica: it is the world");
    if (all_single(t, got->label))
        return _("the group has a single member: the color differs on every rank");
    const bool by_tp = has_members(got, (Members){rank % c->tp, c->tp, groups});
    if (by_tp || has_members(got, (Members){rank % groups, groups, c->tp}))
        return of_remainder(
            _("the ranks of a group are not neighbours: these have the same remainder rank %% %d, "
              "but the color of a group is the quotient rank / tp"),
            by_tp ? c->tp : groups);
    if (has_members(got, (Members){rank / groups * groups, 1, groups}))
        return _("each group has as many ranks as there should be groups, which is right only "
                 "where there are tp groups, as with 4 ranks and tp = 2: check what the rank is "
                 "divided by");
    return got->count == c->tp ? _("the group is not made of tp consecutive ranks")
                               : _("the group does not have tp members: ranks with the same "
                                   "quotient rank / tp share a color");
}

/* The members of a group, as bits. */
static uint64_t bits_of(const Entry *members)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < members->count; i++)
        bits |= numbers_of(members)[i] >= 0 && numbers_of(members)[i] < MAX_RANKS
                    ? UINT64_C(1) << (int)numbers_of(members)[i]
                    : 0;
    return bits;
}

const char *made_of_wrong_split(const Trial *t, const Entry *got, const Entry *want)
{
    static char text[300];
    const RankCalls *mine = &t->outcome->calls->rank[t->rank];
    const uint64_t is = bits_of(got), right = bits_of(want);
    const Call *first = NULL, *last = NULL;
    char group[32];
    for (int64_t i = 0; i < mine->count; i++) {
        const Call *call = &mine->call[i];
        const bool labs = call->made && *line_of(call->address);
        const uint64_t members = labs ? members_made(t, call->made) : 0;
        first = members == right && !first ? call : first;
        last = members == is ? call : last;
    }
    if (!last || is == everyone(t)) /* then it may be mesh->world itself */
        return NULL;
    const char *line = line_of(last->address);
    if (first && first < last)
        snprintf(text, sizeof text,
                 _("an earlier %s%s%s made the right group, but mesh->%s is one that a later %s "
                   "made: keep the group of the right color"),
                 first->name, *line_of(first->address) ? _(" at ") : "", line_of(first->address),
                 group_names[want->label.index], last->name);
    else if (!strcmp(last->name, "split") && right & ~last->members)
        snprintf(text, sizeof text,
                 _("the %s%s%s splits the group %s, which lacks rank %d: split mesh->world"),
                 last->name, *line ? _(" at ") : "", line, group_text(last, group),
                 __builtin_ctzll(right & ~last->members));
    else
        return NULL;
    return text;
}

static const char *wrong_members(const Trial *t, bool is_dp, const Entry *got, const Entry *want)
{
    const Case *c = t->c;
    const char *split = NULL;
    if (same_set(got, want))
        return _("the members are right, but in a different order: the key decides the order");
    if (t->outcome->calls && (split = made_of_wrong_split(t, got, want)))
        return split;
    if (!is_dp)
        return wrong_tp_members(t, got);
    if (has_members(got, (Members){0, 1, c->world}))
        return _("ranks holding different pieces of the weights are averaged together: the group "
                 "is the world");
    if (got->count == 1)
        return _("the averaging group has a single member: this rank exchanges nothing with other "
                 "replicas");
    if (has_members(got, tp_group(c, t->rank)))
        return _("the ranks grouped for averaging hold different pieces of the weights: this is "
                 "the tp group again");
    if (has_members(got, (Members){t->rank % replicas_of(c), replicas_of(c), c->tp}))
        return of_remainder(
            _("the ranks of this group have the same remainder rank %% dp, with dp = %d; "
              "those that hold the same piece of the weights have the same remainder rank %% tp"),
            replicas_of(c));
    static char text[200];
    const uint64_t is = bits_of(got), right = bits_of(want);
    if (is & ~right)
        snprintf(text, sizeof text,
                 _("the group also contains rank %d, which holds a different piece of the weights"),
                 __builtin_ctzll(is & ~right));
    else
        snprintf(text, sizeof text,
                 _("the group lacks rank %d, which holds the same piece of the weights"),
                 __builtin_ctzll(right & ~is));
    return text;
}

static int number_of(const Case *c, int rank, Taken what)
{
    int groups = c->world / c->tp;
    const int values[TAKEN] = {rank,          rank % c->tp, rank / c->tp, rank % groups,
                               rank / groups, c->world,     groups};
    return values[what];
}

bool all_are(const Trial *t, Label label, Taken what)
{
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, VALUES, label);
        if (!got || got->count != 1 || numbers_of(got)[0] != number_of(t->c, rank, what))
            return false;
    }
    return true;
}

double on_all_ranks(const Trial *t, Label label)
{
    double number = -1;
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, VALUES, label);
        if (!got || got->count != 1 || (rank > 0 && numbers_of(got)[0] != number))
            return -1;
        number = numbers_of(got)[0];
    }
    return number;
}

static const char *wrong_place(const Trial *t, bool is_dp, Label label)
{
    bool is_rank = label.what == RANK_IN;
    const double is = on_all_ranks(t, label);
    if (is_dp && is == !is_rank)
        return is_rank ? _("it is 0 on every rank, as before mesh_init_dp")
                       : _("it is 1 on every rank, as before mesh_init_dp");
    if (is_rank && all_are(t, label, IN_WORLD))
        return _(
            "this is the rank's number in the world, not its place in the group, where ranks are "
            "numbered from 0");
    const bool by_tp = all_are(t, label, IN_TP);
    if (is_rank && is_dp && (by_tp || all_are(t, label, BY_GROUPS)))
        return of_remainder(
            _("two ranks of the same replica have different replica numbers: this "
              "is the remainder rank %% %d, but a replica's number is the quotient rank / tp"),
            by_tp ? t->c->tp : replicas_of(t->c));
    if (is_rank && !is_dp && all_are(t, label, REPLICA))
        return _("this is the number of the replica, not this rank's place in the group");
    if (is_rank && !is_dp && all_are(t, label, BY_GROUPS))
        return _(
            "it is not this rank's place in the group, but the rank modulo the number of "
            "groups, which is right only where there are tp groups, as with 4 ranks and tp = 2");
    if (is_rank && is_dp && all_are(t, label, OVER_GROUPS))
        return _("it is not this rank's place in the group, but the rank divided by the number of "
                 "replicas, which is right only where there are tp of them, as with 4 ranks and tp "
                 "= 2");
    if (!is_rank && all_are(t, label, ALL_RANKS))
        return _("this is the size of the world, not of the group that was made");
    if (!is_rank && !is_dp && all_are(t, label, GROUPS_MADE))
        return _("this is the number of groups, not of the ranks in a group");
    return is_rank ? _("it is not this rank's place in the group")
                   : _("it is not the size of the group");
}

const char *wrong_group(const Trial *t, const Entry *got, const Entry *want)
{
    const Label label = want->label;
    return label.what == MEMBERS_OF ? wrong_members(t, label.index == DP, got, want)
                                    : wrong_place(t, label.index == DP, label);
}
