/* Lab 14: explains a wrong norm, and gradients that were not summed over the replicas, or were
 * summed more than once. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/grid.h"
#include "grader/labs/shared/stage_blocks.h"
#include "grader/labs/shared/wrong_metrics.h"

/* ---- the norm ------------------------------------------------------------------------------------------------ */

/* The axes of a sum: a set of 1 << GroupName. LEFT_OUT: it lacks even the rank's own number. */
enum { TENSOR = 1 << TP, DATA = 1 << DP, PIPELINE = 1 << PP, LEFT_OUT = 1 << AXES };

/* The axes that have more than one rank. */
static int axes_of(const Case *c)
{
    return (c->tp > 1 ? TENSOR : 0) | (replicas_of(c) > 1 ? DATA : 0) | (c->pp > 1 ? PIPELINE : 0);
}

/* Does a rank's sum over these axes include the number of rank `other`? */
static bool is_added(const Case *c, int axes, int rank, int other)
{
    return axes != LEFT_OUT && (axes & TENSOR || rank % c->tp == other % c->tp) &&
           (axes & DATA || replica_of_rank(c, rank) == replica_of_rank(c, other)) &&
           (axes & PIPELINE || stage_of_rank(c, rank) == stage_of_rank(c, other));
}

/* What a rank contributes to a sum. */
typedef double Squares(const Scenario *run, int rank, int time);
static double summed_at(const Evidence *e, Squares *squares, int axes, int time)
{
    const Scenario run = {.c = *e->c};
    double sum = 0;
    for (int other = 0; other < e->c->world; other++)
        if (is_added(e->c, axes, e->trial->rank, other))
            sum += squares(&run, other, time);
    return sum;
}

static double summed(const Evidence *e, Squares *squares, int axes)
{
    return summed_at(e, squares, axes, e->want->label.step);
}

static double norm_of_rank(const Scenario *run, int rank, int time)
{
    return sqrt(grid_shards(run, rank, time) + grid_whole(run, rank, time));
}

/* The norm of everything that the ranks of a tp group hold together. */
static double norm_of_stage(const Scenario *run, int rank, int time)
{
    const int first = rank - rank % run->c.tp;
    double squares = grid_whole(run, rank, time);
    for (int i = 0; i < run->c.tp; i++)
        squares += grid_shards(run, first + i, time);
    return sqrt(squares);
}

static bool is_number(const Evidence *e, double number)
{
    return fabs(e->is[0] - number) <= 1e-12 * number;
}

/* The subject of a sentence: the squares of both kinds, of the shards, or of whole parameters. */
static const char *which(bool shards, bool whole)
{
    return shards && whole ? _("the squares")
           : shards        ? _("the squares of the shards")
                           : _("the squares of whole parameters");
}

/* Does this rank make a call with other replicas for this result? */
static bool meets_other_replicas(const Evidence *e)
{
    const int own = replica_of_rank(e->c, e->trial->rank);
    for (const Call *call = NULL; (call = next_call_there(e, call));)
        for (int rank = 0; rank < e->c->world; rank++)
            if (call->members >> rank & 1 && replica_of_rank(e->c, rank) != own)
                return true;
    return !e->trial->outcome->calls;
}

/* Describes the first difference of these axes from the right ones. */
static bool says_of_axes(const Evidence *e, int shards, int whole)
{
    const int axes = axes_of(e->c);
    const bool no_pp = (axes & PIPELINE) && !(shards & PIPELINE),
               no_pp_whole = (axes & PIPELINE) && !(whole & PIPELINE);
    if (shards == LEFT_OUT || whole == LEFT_OUT)
        return says(e, _("%s are left out"), which(shards == LEFT_OUT, whole == LEFT_OUT));
    const bool lacks_pp = no_pp || no_pp_whole,
               lacks_tp = !((shards | whole) & DATA) && !(whole & TENSOR);
    const Call *made = lacks_pp ? sum_over(e, PP) : lacks_tp ? sum_over(e, TP) : NULL;
    /* one number may be the sum of the squares of the other kind */
    if (made && (!lacks_pp || no_pp == no_pp_whole || numbers_over(e, PP) > 1))
        return says(e, _("%s are summed over mesh->%s at %s, but the norm does not have that sum"),
                    lacks_pp ? which(no_pp, no_pp_whole) : which(true, false),
                    group_names[lacks_pp ? PP : TP], line_of(made->address));
    if (lacks_pp)
        return says(e, _("%s are not summed over mesh->pp: each stage holds different parameters"),
                    which(no_pp, no_pp_whole));
    if ((shards | whole) & DATA)
        return says(e,
                    _("%s are also summed over mesh->dp, but all replicas have the same gradients"),
                    which(shards & DATA, whole & DATA));
    return says(e, "%s",
                whole & TENSOR ? _("whole parameters are counted once for each rank of a tp group")
                               : _("the squares of the shards are not summed over mesh->tp: each "
                                   "rank of a tp group holds different elements"));
}

/* Is the rank's first norm the root of sums over these axes, too? Later ones lack some squares. */
static bool is_first_norm(const Evidence *e, int shards, int whole)
{
    Label first = e->want->label;
    first.step = USUAL_SUM;
    const Entry *got = entry_of_rank(e->trial, e->trial->rank, VALUES, first);
    const double norm = sqrt(summed_at(e, grid_shards, shards, USUAL_SUM) +
                             summed_at(e, grid_whole, whole, USUAL_SUM));
    return !got || fabs(numbers_of(got)[0] - norm) <= 1e-12 * norm;
}

/* Is the norm the root of sums over other axes? */
static bool summed_over_other_axes(const Evidence *e)
{
    double of_shards[LEFT_OUT + 1], of_whole[LEFT_OUT + 1];
    const int axes = axes_of(e->c) & (meets_other_replicas(e) ? ~0 : ~DATA);
    for (int i = 0; i <= LEFT_OUT; i++) {
        of_shards[i] = summed(e, grid_shards, i);
        of_whole[i] = summed(e, grid_whole, i);
    }
    for (int shards = 0; shards <= LEFT_OUT; shards++)
        for (int whole = 0; whole <= LEFT_OUT; whole++)
            if ((shards == LEFT_OUT || (shards & ~axes) == 0) &&
                (whole == LEFT_OUT || (whole & ~axes) == 0) &&
                !close_to(&(double){sqrt(of_shards[shards] + of_whole[whole])}, e->right, 1, 1,
                          e->tolerance) &&
                is_number(e, sqrt(of_shards[shards] + of_whole[whole])) &&
                is_first_norm(e, shards, whole))
                return says_of_axes(e, shards, whole);
    return false;
}

/* Do all squares of one kind count several times, or are they divided? */
static bool squares_count_otherwise(const Evidence *e)
{
    const double shards = summed(e, grid_shards, TENSOR | PIPELINE),
                 whole = summed(e, grid_whole, PIPELINE), pp = e->c->pp;
    if (pp > 1 && is_number(e, sqrt(pp * summed(e, grid_shards, TENSOR | DATA | PIPELINE) + whole)))
        return says(e, _("the squares of the shards are summed over the world, which has other "
                         "replicas and stages: sum them over mesh->tp"));
    for (int kind = 0; kind < 2; kind++) {
        const double mine = kind ? whole : shards, other = kind ? shards : whole,
                     times = (e->is[0] * e->is[0] - other) / mine,
                     n = round(times > 1 ? times : 1 / times);
        if (n > 1 && n <= MAX_RANKS && is_number(e, sqrt(other + mine * (times > 1 ? n : 1 / n))))
            return says(e,
                        times > 1
                            ? _("%s count %.0f times: the square of each number must count once")
                            : _("%s are divided by %.0f: the square of each number must count "
                                "once"),
                        which(!kind, kind), n);
    }
    return false;
}

static bool norm_is_wrong(const Evidence *e)
{
    const double right = e->right[0], pp = e->c->pp;
    if (e->want->check != METRICS || e->want->label.of != THE_NORM || e->count != 1)
        return false;
    if (summed_over_other_axes(e))
        return true;
    if (squares_count_otherwise(e))
        return true;
    if (is_number(e, right * right))
        return says(e, _("it is the square of the norm: the root is missing"));
    if (is_number(e, right * sqrt(pp)))
        return says(e, _("the squares are summed over mesh->pp twice"));
    if (is_number(e, summed(e, norm_of_rank, PIPELINE)) ||
        is_number(e, summed(e, norm_of_rank, TENSOR | PIPELINE)) ||
        is_number(e, summed(e, norm_of_rank, TENSOR | DATA | PIPELINE)) ||
        is_number(e, summed(e, norm_of_stage, PIPELINE)) ||
        is_number(e, sqrt(summed(e, grid_shards, TENSOR | PIPELINE)) +
                         sqrt(summed(e, grid_whole, PIPELINE))))
        return says(e, _("norms are added: add the squares, and take the root at the end"));
    const double divisor = round(pow(right / e->is[0], 2));
    if (divisor > 1 && divisor <= MAX_RANKS && is_number(e, right / sqrt(divisor)))
        return says(e, _("the sum of the squares is divided by %.0f: it must be a sum, not a mean"),
                    divisor);
    if (e->is[0] == (float)right)
        return says(e, _("it is the right norm rounded to a float: keep it as double (sqrt, not "
                         "sqrtf)"));
    return fabs(e->is[0] - right) <= 1e-6 * right &&
           says(e, _("the norm has lost precision: add and keep the squares as double, since float "
                     "has fewer digits"));
}

/* ---- the gradients ------------------------------------------------------------------------------------------- */

static bool is_gradient_of_grid(const Evidence *e)
{
    return e->want->check == GRADIENT && replicas_of(e->c) > 1;
}

static bool replicas_differ(const Evidence *e)
{
    const Members replicas = group_members(e->c, DP, e->trial->rank);
    for (int i = 0; i < replicas.count && is_gradient_of_grid(e); i++) {
        const Entry *other =
            entry_of_rank(e->trial, replicas.first + i * replicas.stride, VALUES, e->want->label);
        if (other && other->count == e->count &&
            !close_to(numbers_of(other), e->is, 1, e->count, e->tolerance))
            return says(e, _("the replicas have different gradients: they are not summed over "
                             "mesh->dp, or not all of them"));
    }
    return false;
}

/* Have the ranks sent clearly more than one sum over the replicas takes? replicas_differ() comes
 * first, so the replicas agree. */
static bool summed_in_each_pass(const Evidence *e)
{
    const Label step = label_of(ITSELF, THE_MODEL, 0, e->want->label.step);
    const Entry *want = find_entry(e->trial->expected.all, TRAFFIC, step);
    double sent = 0;
    for (int rank = 0; rank < e->c->world; rank++) {
        const Entry *got = entry_of_rank(e->trial, rank, TRAFFIC, step);
        sent += got && got->count == TRAFFIC_NUMBERS ? numbers_of(got)[SENT] : 0;
    }
    return is_gradient_of_grid(e) && want && sent > 1.2 * numbers_of(want)[0] &&
           says(e,
                _("the ranks sent %.2g times what a single sum over the replicas after the last "
                  "pass takes: gradients that an earlier pass has summed are summed again"),
                sent / numbers_of(want)[0]);
}

/* ---- what follows from wrong sums ----------------------------------------------------------------------------- */

/* Are the sums over the stages wrong, but not because their groups are? */
static bool metrics_come_first(const LabResult *result)
{
    return result->check[METRICS].failed && !result->check[GROUPS].failed;
}

static bool after_wrong_metrics(const Evidence *e)
{
    const bool sums = e->want->label.what == LOSS_OF || e->want->label.of == THE_NORM;
    return e->want->check == LAYOUT && sums && metrics_come_first(e->trial->result) &&
           says(e, _("what lab 14 sums over the ranks is already wrong, so look at the check "
                     "'metrics' first"));
}

Finder *const grid_reasons[] = {after_wrong_metrics, after_wrong_gradients, metrics_are_wrong,
                                norm_is_wrong,       stages_are_wrong,      NULL};
Finder *const grid_more_reasons[] = {partial_match, few_wrong, replicas_differ, summed_in_each_pass,
                                     NULL};

void grid_ending(const Trial *t, char *text, size_t size)
{
    if (t->c->micros && metrics_come_first(t->result))
        append(text, size, "%s\n",
               _("what lab 14 sums over the ranks is already wrong, so look at the check "
                 "'metrics' first"));
    stages_ending(t, text, size);
}
