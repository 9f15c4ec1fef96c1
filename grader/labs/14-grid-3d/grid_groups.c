/* Lab 14: explains a wrong group, rank or degree of the grid. */
#include "grader/labs/grid.h"
#include "grader/labs/shared/wrong_groups.h"

/* Orders of the axes, beginning with the one that changes fastest. The right order is first. */
typedef GroupName AxisOrder[AXES];
static const AxisOrder orders[] = {{TP, DP, PP}, {TP, PP, DP}, {DP, TP, PP},
                                   {DP, PP, TP}, {PP, TP, DP}, {PP, DP, TP}};
enum { ORDERS = sizeof orders / sizeof *orders, RIGHT_ORDER = 0 };

static int degree_of(const Case *c, GroupName axis)
{
    return axis == TP ? c->tp : axis == DP ? replicas_of(c) : c->pp;
}

static Members members_in(const Case *c, const AxisOrder order, GroupName axis, int rank)
{
    int stride = 1;
    for (int i = 0; order[i] != axis; i++)
        stride *= degree_of(c, order[i]);
    return (Members){rank - rank / stride % degree_of(c, axis) * stride, stride,
                     degree_of(c, axis)};
}

/* On all ranks, are the groups (or places) under this label those of axis `as` in a grid of this
 * order? */
static bool is_axis(const Trial *t, Label label, GroupName as, const AxisOrder order)
{
    for (int rank = 0; rank < t->c->world; rank++) {
        const Members m = members_in(t->c, order, as, rank);
        const Entry *got = entry_of_rank(t, rank, VALUES, label);
        if (!got || !(label.what == MEMBERS_OF
                          ? has_members(got, m)
                          : got->count == 1 && numbers_of(got)[0] == place_in(m, rank)))
            return false;
    }
    return true;
}

/* The order of a grid in which this axis is right and, with `all`, the other axes too; or NULL. */
static const GroupName *order_found(const Trial *t, Label label, bool all)
{
    for (int i = 0; i < ORDERS; i++) {
        bool fits = true;
        for (GroupName axis = TP; axis < AXES; axis++) {
            Label one = label;
            one.index = (int)axis;
            fits = fits && ((!all && one.index != label.index) || is_axis(t, one, axis, orders[i]));
        }
        if (fits)
            return orders[i];
    }
    return NULL;
}

/* Writes "pp first, then along dp". */
static void write_order(const Case *c, const AxisOrder order, char *text, size_t size)
{
    text[0] = 0;
    for (int i = 0, before = 0; i < AXES; i++)
        if (degree_of(c, order[i]) > 1)
            append(text, size, "%s%s",
                   before++ == 0 ? ""
                   : before == 2 ? _(" first, then along ")
                                 : _(", then along "),
                   group_names[order[i]]);
}

static const char *of_another_order(const Trial *t, Label label, bool all)
{
    static char text[300];
    char is[80], right[80];
    const GroupName *order = order_found(t, label, all);
    if (!order)
        return NULL;
    write_order(t->c, order, is, sizeof is);
    write_order(t->c, orders[RIGHT_ORDER], right, sizeof right);
    snprintf(text, sizeof text,
             label.what == MEMBERS_OF
                 ? _("this is the %s group of a grid whose ranks are numbered along %s; here they "
                     "are numbered along %s")
                 : _("this is the %s_rank of a grid whose ranks are numbered along %s; here they "
                     "are numbered along %s"),
             group_names[label.index], is, right);
    return text;
}

/* The other axis to which these groups, or places, belong; or AXES. */
static GroupName another_axis(const Trial *t, Label label)
{
    GroupName axis = TP;
    while (axis < AXES &&
           (axis == (GroupName)label.index || !is_axis(t, label, axis, orders[RIGHT_ORDER])))
        axis++;
    return axis;
}

static int place_along(const Case *c, GroupName axis, int rank)
{
    return place_in(group_members(c, axis, rank), rank);
}

/* The two axes whose places must determine the color of a group along the third axis. */
typedef struct Color {
    GroupName slow, fast;
} Color;

/* The place along an axis, or the degree, that the mesh of this rank has; or -1. */
static int said(const Trial *t, Label label, What what, GroupName axis, int rank)
{
    label.what = what;
    label.index = (int)axis;
    const Entry *got = entry_of_rank(t, rank, VALUES, label);
    return got && got->count == 1 ? (int)numbers_of(got)[0] : -1;
}

/* Are these the groups of ranks with the same slow_rank * factor + fast_rank, as the mesh has these? */
static bool is_color(const Trial *t, Label label, Color of, int factor)
{
    int color[MAX_RANKS];
    for (int rank = 0; rank < t->c->world; rank++)
        color[rank] = said(t, label, RANK_IN, of.slow, rank) * factor +
                      said(t, label, RANK_IN, of.fast, rank);
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, VALUES, label);
        bool is_member[MAX_RANKS] = {false};
        for (int64_t i = 0; got && i < got->count; i++) {
            const double member = numbers_of(got)[i];
            if (!(member >= 0 && member < t->c->world))
                return false;
            is_member[(int)member] = true;
        }
        for (int other = 0; other < t->c->world; other++)
            if (is_member[other] != (color[other] == color[rank]))
                return false;
    }
    return true;
}

static Color color_of(Label label)
{
    return (Color){label.index == PP ? DP : PP, label.index == TP ? DP : TP};
}

/* A right color of two places, of which one is wrong, perhaps because a degree is. */
static const char *of_wrong_place(const Trial *t, Label label)
{
    static char text[300];
    char degrees[120] = "";
    const Color of = color_of(label);
    const GroupName axes[] = {of.slow, of.fast};
    if (!is_color(t, label, of, degree_of(t->c, of.fast)))
        return NULL;
    for (GroupName axis = TP; axis < AXES; axis++) {
        const int is = said(t, label, DEGREE_OF, axis, t->rank);
        if (is != degree_of(t->c, axis))
            append(degrees, sizeof degrees, _("mesh->%s_degree is %d and should be %d, and "),
                   group_names[axis], is, degree_of(t->c, axis));
    }
    for (int i = 0; i < 2; i++)
        for (int rank = 0; rank < t->c->world; rank++) {
            const int is = said(t, label, RANK_IN, axes[i], rank);
            if (is == place_along(t->c, axes[i], rank))
                continue;
            snprintf(text, sizeof text,
                     _("%smesh->%s_rank is %d on rank %d and should be %d: a color made of it "
                       "gives these groups"),
                     degrees, group_names[axes[i]], is, rank, place_along(t->c, axes[i], rank));
            return text;
        }
    return NULL;
}

/* A color computed from the places on two axes, with a factor so small that different groups get
 * the same color. */
static const char *small_factor(const Trial *t, Label label)
{
    static char text[240];
    const Color of = color_of(label);
    const char *slow = group_names[of.slow], *fast = group_names[of.fast];
    for (int factor = 1; factor < degree_of(t->c, of.fast); factor++)
        if (is_color(t, label, of, factor)) {
            snprintf(text, sizeof text,
                     _("the color is the same for %s_rank 0, %s_rank %d and for %s_rank 1, %s_rank "
                       "0, as in %s_rank * %d + %s_rank: the factor must be at least %s = %d"),
                     slow, fast, factor, slow, fast, slow, factor, fast, fast,
                     degree_of(t->c, of.fast));
            return text;
        }
    return NULL;
}

/* Names the other axes along which the members differ. */
static const char *mixed_group(const Case *c, GroupName of, int rank, const Entry *got)
{
    static const char *const others[AXES] = {N_("ranks that hold different pieces of the weights"),
                                             N_("ranks of other replicas"),
                                             N_("ranks of other stages")};
    static char text[400];
    char found[240] = "";
    for (GroupName axis = TP; axis < AXES; axis++) {
        bool differs = false;
        for (int64_t i = 0; i < got->count && axis != of; i++) {
            const int member = (int)numbers_of(got)[i];
            differs = differs || place_along(c, axis, member) != place_along(c, axis, rank);
        }
        if (differs)
            append(found, sizeof found, "%s%s", found[0] ? _(" and ") : "", _(others[axis]));
    }
    if (!found[0])
        return _("members are missing: all ranks of a group must give the same color");
    snprintf(text, sizeof text,
             got->count == c->world
                 ? _("the group is the world: it also contains %s; the color must tell them apart")
                 : _("the group also contains %s: the color must tell them apart"),
             found);
    return text;
}

static const char *wrong_members_of_grid(const Trial *t, const Entry *got, const Entry *want)
{
    static char text[100];
    if (same_set(got, want))
        return _("the members are right, but in a different order: the key decides the order");
    const char *order = of_another_order(t, want->label, true);
    if (!order)
        order = of_wrong_place(t, want->label);
    const bool may_be_other = want->count > 1 && got->count > 1 && got->count < t->c->world;
    const GroupName other = may_be_other ? another_axis(t, want->label) : AXES;
    if (!order && other < AXES) {
        snprintf(text, sizeof text, _("this is the %s group"), group_names[other]);
        order = text;
    }
    if (!order && t->outcome->calls)
        order = made_of_wrong_split(t, got, want);
    if (order)
        return order;
    if (got->count == 1)
        return _("the group has a single member: the color differs on every rank");
    if (may_be_other)
        order = of_another_order(t, want->label, false);
    if (!order)
        order = small_factor(t, want->label);
    return order ? order : mixed_group(t->c, (GroupName)want->label.index, t->rank, got);
}

static const char *wrong_degree_of_grid(const Trial *t, Label label)
{
    static char text[100];
    const Case *c = t->c;
    const double is = on_all_ranks(t, label);
    for (GroupName axis = TP; axis < AXES; axis++)
        if (is == degree_of(c, axis) && is > 1) {
            snprintf(text, sizeof text, _("this is the %s_degree"), group_names[axis]);
            return text;
        }
    if (is == 1)
        return _("it is 1 on every rank, as before mesh_init_3d");
    const int replicas = c->world / c->tp;
    if (label.index == DP && is == replicas)
        return _("it counts the replicas of every stage: divide the world by tp and by pp");
    return is == c->world ? _("this is the size of the world, not of the group that was made")
                          : _("it is not the size of the group");
}

static const char *wrong_rank_of_grid(const Trial *t, Label label)
{
    static char text[100];
    if (on_all_ranks(t, label) == 0)
        return _("it is 0 on every rank, as before mesh_init_3d");
    const GroupName other = another_axis(t, label);
    if (other < AXES) {
        snprintf(text, sizeof text, _("this is the %s_rank"), group_names[other]);
        return text;
    }
    if (label.index == DP && all_are(t, label, REPLICA))
        return _("the numbers continue from stage to stage: take them modulo dp");
    if (all_are(t, label, IN_WORLD))
        return _(
            "this is the rank's number in the world, not its place in the group, where ranks are "
            "numbered from 0");
    const char *order = of_another_order(t, label, false);
    return order ? order : _("it is not this rank's place in the group");
}

const char *wrong_group_of_grid(const Trial *t, const Entry *got, const Entry *want)
{
    const Label label = want->label;
    return label.what == MEMBERS_OF ? wrong_members_of_grid(t, got, want)
           : label.what == RANK_IN  ? wrong_rank_of_grid(t, label)
                                    : wrong_degree_of_grid(t, label);
}
