/* Labs 11 and 14: explains a wrong sum of metrics. */
#include "grader/labs/shared/wrong_metrics.h"

#include <limits.h>
#include <math.h>

#include "grader/labs/grid.h"
#include "grader/labs/replicas.h"

static bool same(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b) || (isnan(a) && isnan(b));
}

/* The mean of the replicas' mean losses, and this replica's own numbers. */
typedef struct Counted {
    double mean, own[3];
} Counted;

static Counted counted(const Trial *t, int evaluation)
{
    Scenario run = {.c = *t->c};
    Counted all = {0};
    int dp = replicas_of(t->c);
    for (int replica = 0; replica < dp; replica++) {
        Metrics m = replica_metrics(&run, replica, evaluation);
        all.mean += m.loss_sum / m.count / dp;
        if (replica == t->rank / t->c->tp)
            memcpy(all.own, (double[]){m.loss_sum, m.correct, m.count}, sizeof all.own);
    }
    return all;
}

/* A mistake in the three sums: the wrong sums are `factor` times the expected ones, or the numbers
 * `is`. */
typedef struct MetricsMistake {
    double factor;        /* 0: the wrong sums are those in `is` */
    double is[3];         /* used if `factor` is 0 */
    const char *sentence; /* %s: "loss_sum", or "each of the three sums" */
} MetricsMistake;

/* The name of the first wrong sum, or of all three, if the mistake explains each wrong one;
 * otherwise NULL. */
static const char *wrong_ones(const Evidence *e, const MetricsMistake *mistake)
{
    static const char *const names[] = {"loss_sum", "correct", "count"};
    int wrong = 0, first = 0;
    for (int i = 2; i >= 0; i--) {
        if (same(e->is[i], e->right[i]))
            continue;
        if (!same(e->is[i], mistake->factor != 0 ? mistake->factor * e->right[i] : mistake->is[i]))
            return NULL;
        wrong++;
        first = i;
    }
    return wrong == 0 ? NULL : wrong < 3 ? names[first] : _("each of the three sums");
}

/* May x be a sum of numbers that were rounded to floats or integers? The exact one is `right`. None
 * of the replicas' numbers is far below the others, so all are multiples of one power of two. */
static bool is_rounded(double x, double right, int world)
{
    const double spacing = ldexp(1, ilogb(right / (64 * world)) - 23);
    return fabs(x - right) <= (world + 1) * 0x1p-23 * right &&
           (fmod(x, spacing) == 0 || (x == floor(x) && right != floor(right)));
}

/* Were the replicas' numbers and their sum rounded to floats or integers? */
static bool rounded(const Evidence *e)
{
    for (int i = 0; i < 3; i++)
        if (e->is[i] != INT_MIN && e->is[i] != INT_MAX && !same(e->is[i], e->right[i]) &&
            !is_rounded(e->is[i], e->right[i], e->c->world))
            return false;
    return says(e, _("the sums have lost precision: add and keep them as double, since float has "
                     "fewer digits, and int has no fraction and ends at 2147483647"));
}

static bool in_other_order(const Evidence *e)
{
    for (int i = 0; i < 3; i++)
        if (!same(e->is[0], e->right[i]) && !same(e->is[1], e->right[i]) &&
            !same(e->is[2], e->right[i]))
            return false;
    return true;
}

static bool one_of(const Evidence *e, const MetricsMistake *mistakes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *wrong = wrong_ones(e, &mistakes[i]);
        if (wrong)
            return says(e, _(mistakes[i].sentence), wrong);
    }
    return false;
}

/* The sums over all replicas. Only their last stages have counted rows. */
static Metrics of_all_replicas(const Evidence *e)
{
    Scenario run = {.c = *e->c};
    Metrics sum = {0};
    for (int replica = 0; replica < replicas_of(e->c); replica++) {
        const Metrics m = replica_metrics(&run, replica, e->want->label.step);
        sum = (Metrics){sum.loss_sum + m.loss_sum, sum.correct + m.correct, sum.count + m.count};
    }
    return sum;
}

static bool is_of_another_replica(const Evidence *e)
{
    Scenario run = {.c = *e->c};
    for (int replica = 0; replica < replicas_of(e->c); replica++) {
        const Metrics m = replica_metrics(&run, replica, e->want->label.step);
        const MetricsMistake other = {
            0, {m.loss_sum, m.correct, m.count}, N_("%s is that of another replica's pipeline")};
        if (one_of(e, &other, 1))
            return true;
    }
    return false;
}

static const Call *next_sum_over(const Evidence *e, GroupName axis, const Call *last)
{
    const uint64_t members = ranks_of(group_members(e->c, axis, e->trial->rank));
    do
        last = next_call_there(e, last);
    while (last && (last->rule != REDUCTION || last->members != members));
    return last;
}

const Call *sum_over(const Evidence *e, GroupName axis)
{
    return next_sum_over(e, axis, NULL);
}

int64_t numbers_over(const Evidence *e, GroupName axis)
{
    int64_t numbers = 0;
    for (const Call *call = NULL; (call = next_sum_over(e, axis, call));)
        numbers += call->sent[0].count;
    return numbers;
}

/* Does this rank get the zeros of another stage than the last in a broadcast? */
static bool broadcast_elsewhere(const Evidence *e)
{
    char one[300];
    for (const Call *call = NULL; e->zeros == e->count && (call = next_call_there(e, call));) {
        if (strcmp(call->name, "broadcast") || stage_of_rank(e->c, call->root) == e->c->pp - 1)
            continue;
        call_text(e->trial->outcome->calls, call, NULL, one, sizeof one);
        return says(e,
                    _("in the %s, all ranks get what rank %d has, but only the last stage has "
                      "counted rows"),
                    one, call->root);
    }
    return false;
}

static bool metrics_of_stages_are_wrong(const Evidence *e)
{
    const double tp = e->c->tp, pp = e->c->pp;
    const bool last = stage_of_rank(e->c, e->trial->rank) == e->c->pp - 1;
    const Metrics all = of_all_replicas(e);
    const Entry *first = entry_of_rank(e->trial, group_members(e->c, PP, e->trial->rank).first,
                                       VALUES, e->want->label);
    const bool right_on_first = first && first->count == e->count &&
                                close_to(numbers_of(first), e->right, 1, e->count, e->tolerance);
    const MetricsMistake mistakes[] = {
        {last || e->beyond ? 1 : 0, /* the last stage's own sums are right */
         {0},
         numbers_over(e, PP) < 3 ? N_("%s is this stage's own: sum over the stages, mesh->pp")
                                 : N_("%s is this stage's own: a sum over mesh->pp is made, but "
                                      "its result is not stored in it")},
        {1 / pp,
         {0},
         N_("%s is divided by the number of stages, but only the last stage has counted rows")},
        {0,
         {all.loss_sum, all.correct, all.count},
         N_("%s is also summed over mesh->dp: metrics_synchronise does that afterwards")},
        {tp,
         {0},
         N_("%s is also summed over mesh->tp, whose ranks have all counted the same rows")},
        {last && right_on_first ? 2 : 1,
         {0},
         N_("%s contains this stage's own twice: the sum over mesh->pp has it already")},
        {pp, {0}, N_("%s is summed over mesh->pp twice")},
    };
    return broadcast_elsewhere(e) || one_of(e, mistakes, sizeof mistakes / sizeof *mistakes) ||
           is_of_another_replica(e) || rounded(e) ||
           (in_other_order(e) && says(e, _("the sums are right, but stored in a different order")));
}

/* Do the wrong sums contain what this rank got from the previous call? If the lab sums a static
 * variable over a group, they contain it once for each rank. `power`: 2 for a norm, the root of a
 * sum. */
static bool contains_the_last(const Evidence *e, int ranks, double power)
{
    Label before = e->want->label;
    before.step--;
    const Entry *last = entry_of_rank(e->trial, e->trial->rank, VALUES, before);
    for (int64_t i = 0; last && i < e->count; i++) {
        const double kept = pow(numbers_of(last)[i], power), right = pow(e->right[i], power),
                     is = pow(e->is[i], power);
        if (!same(e->is[i], e->right[i]) && !same(is, right + kept) &&
            !same(is, right + ranks * kept))
            return false;
    }
    return last &&
           says(e, _("it also contains the result of the previous call: a static or file-scope "
                     "variable keeps it. Begin each call with zeros"));
}

bool metrics_are_wrong(const Evidence *e)
{
    const Case *c = e->c;
    const double dp = replicas_of(c), tp = c->tp;
    if (e->want->check != METRICS)
        return false;
    if (contains_the_last(e, e->want->label.of == METRICS_OF ? (int)dp : c->pp,
                          e->want->label.of == THE_NORM ? 2 : 1))
        return true;
    if (e->count != 3)
        return false;
    if (e->want->label.of == METRICS_OF_STAGES)
        return metrics_of_stages_are_wrong(e);
    if (e->want->label.of != METRICS_OF)
        return false;
    const Counted all = counted(e->trial, e->want->label.step);
    const double n = e->right[2], loss = e->is[0];
    const MetricsMistake mistakes[] = {
        {1 / dp,
         {0},
         N_("%s is divided by the number of replicas: the caller divides by the "
            "count")},
        {0,
         {all.own[0], all.own[1], all.own[2]},
         numbers_over(e, DP) < 3
             ? N_("%s covers this replica only: all three numbers must be summed over the replicas")
             : N_("%s covers this replica only: a sum over mesh->dp is made, but its result is not "
                  "stored in it")},
        {0,
         {e->right[0] / n, e->right[1] / n, 1},
         N_("%s is divided by the count: the caller does that, once for all batches")},
        {0,
         {tp * all.own[0], tp * all.own[1], tp * all.own[2]},
         N_("%s is this replica's own, counted once per tp rank: sum over the replicas, "
            "mesh->dp")},
        {tp,
         {0},
         N_("%s counts each row once per tp rank: sum over the replicas, mesh->dp, alone")},
        {tp / dp,
         {0},
         N_("%s is summed over the world and divided by the number of replicas: sum "
            "over the replicas, mesh->dp, without a division")},
        {0,
         {e->right[0] + all.own[0], e->right[1] + all.own[1], e->right[2] + all.own[2]},
         N_("%s contains this replica's own twice: the sum over the replicas has it already")},
        {dp, {0}, N_("%s is summed over the replicas twice")},
        {0,
         {dp * all.own[0], dp * all.own[1], dp * all.own[2]},
         N_("%s is this replica's own, times the number of replicas: replicas may read different "
            "numbers of rows, so sum it over mesh->dp")},
    };
    if (close_to(e->is, all.own, 1, 3, e->tolerance) && brought_by_one(e))
        return true;
    if (dp > 1 && isfinite(all.mean) &&
        (same(loss, all.mean) || same(loss, all.mean * dp) || same(loss / e->is[2], all.mean)))
        return says(e, _("it is an average of averages: this is wrong if replicas read different "
                         "numbers of rows"));
    return one_of(e, mistakes, sizeof mistakes / sizeof *mistakes) || rounded(e) ||
           (in_other_order(e) && says(e, _("the sums are right, but stored in a different order")));
}
