/* Labs 11, 14 and 16: explains a wrong mean of gradients or weights, or a wrong sum of metrics. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/averages.h"
#include "grader/labs/grid.h"
#include "grader/labs/replicas.h"

bool other_bucket_is_right(const Evidence *e)
{
    Label bucket = e->want->label;
    if (bucket.of != A_BUCKET)
        return false;
    for (int i = 0; i < replica_buckets(bucket.step); i++) {
        bucket.index = i;
        const Entry *want = find_entry(e->trial->expected.all, VALUES, bucket),
                    *got = entry_of_rank(e->trial, e->trial->rank, VALUES, bucket);
        if (want && got && got->count == want->count &&
            close_to(numbers_of(got), numbers_of(want), 1, got->count, e->tolerance))
            return true;
    }
    return false;
}

/* The number by which this bucket's sums were divided, or 0. */
static double divisor_of(const Trial *t, Label bucket, double tolerance)
{
    const Entry *want = find_entry(t->expected.all, VALUES, bucket),
                *got = entry_of_rank(t, t->rank, VALUES, bucket);
    if (!want || !got || got->count != want->count)
        return 0;
    const double *is = numbers_of(got), *right = numbers_of(want);
    int64_t at = 0;
    for (int64_t i = 0; i < want->count; i++)
        at = fabs(right[i]) > fabs(right[at]) ? i : at;
    if (want->count == 0 || is[at] == 0 ||
        !close_to(is, right, is[at] / right[at], want->count, 4 * tolerance))
        return 0;
    return replicas_of(t->c) * right[at] / is[at];
}

bool divided_by_bucket_count(const Evidence *e)
{
    if (e->want->check != GRADIENT)
        return false;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < replica_buckets(round); i++) {
            double divisor =
                divisor_of(e->trial, label_of(GRADIENT_OF, A_BUCKET, i, round), e->tolerance);
            if (!(fabs(divisor - replica_buckets(round)) < 1e-3))
                return false;
        }
    return says(e, _("it is divided by the number of buckets: divide by the number of replicas"));
}

enum { CALLS = 1 }; /* index in a TRAFFIC entry: the calls in which ranks wait for each other */

/* Has this rank taken an average after a step? */
static bool took_average(const Trial *t, int which, int step)
{
    const Entry *got = entry_of_rank(t, t->rank, TRAFFIC, averages_label(CALL_OF, which, step));
    return got && got->count > CALLS && numbers_of(got)[CALLS] > 0;
}

/* 1 if an average is due after a step and this rank took none, -1 for the opposite, else 0. */
static int calls_left_out(const Trial *t, int which, int step)
{
    const Label call = averages_label(CALL_OF, which, step);
    const Entry *want = find_entry(t->expected.all, TRAFFIC, call);
    if (!want || !entry_of_rank(t, t->rank, TRAFFIC, call))
        return 0;
    return (numbers_of(want)[CALLS] > 0) - took_average(t, which, step);
}

/* In the run that begins with step 1, is every average taken where it is due? Then the lab may have
 * a counter of its own, which is right only in that run. */
static bool counts_from_first_step(const Trial *t)
{
    for (int step = 1; step <= AVERAGES_STEPS; step++)
        if (calls_left_out(t, AVERAGES_RUNS - 1, step) != 0)
            return false;
    return true;
}

/* The sentence that says where the lab seems to start counting steps, or "". */
static const char *where_count_begins(const Trial *t, int which, int step, char text[200])
{
    int before = step - 1;
    while (before > 0 && !took_average(t, which, before))
        before--;
    text[0] = '\0';
    if (step % t->c->every != 0)
        return text;
    if (before > 0 && before % t->c->every != 0)
        snprintf(text, 200,
                 _(". The last average followed step %d, where `last` was set: count from 0, not "
                   "from there"),
                 before);
    else if (before == 0 && which == 0 && counts_from_first_step(t))
        snprintf(text, 200, "%s",
                 _(". Run 1 resumes after step 3, where a counter of your own begins at 0 "
                   "again: `step` says how many steps are done"));
    return text;
}

/* Types of 32 bits. */
enum { AS_IT_IS, AS_INT, AS_UNSIGNED, AS_FLOAT, NARROWINGS };

/* The number after a conversion to such a type. */
static int64_t narrowed(int64_t number, int as)
{
    return as == AS_INT        ? (int32_t)number
           : as == AS_UNSIGNED ? (uint32_t)number
           : as == AS_FLOAT    ? (int64_t)(float)number
                               : number;
}

/* Are these the answers of a lab that computes with 32 bits? */
static bool answers_of_32_bits(const double answer[AVERAGES_LARGE])
{
    for (int step = 0; step < NARROWINGS; step++)
        for (int every = 0; every < NARROWINGS; every++) {
            int i = 0;
            while (i < AVERAGES_LARGE && (narrowed(averages_large[i].step, step) %
                                              narrowed(averages_large[i].every, every) ==
                                          0) == (answer[i] != 0))
                i++;
            if (i == AVERAGES_LARGE)
                return true;
        }
    return false;
}

/* Lab 16: says which answer for a large step is wrong, if one is. */
static bool large_step_is_wrong(const Evidence *e)
{
    const LargeStep asked = averages_large[e->first_wrong];
    return says(
        e,
        e->right[e->first_wrong] != 0
            ? _("average_is_due(%lld, %lld, false) returned false, but %lld is a multiple of "
                "%lld%s")
            : _("average_is_due(%lld, %lld, false) returned true, but %lld is not a "
                "multiple of %lld%s"),
        (long long)asked.step, (long long)asked.every, (long long)asked.step,
        (long long)asked.every,
        answers_of_32_bits(e->is)
            ? _(". Compute with int64_t: int and float have 32 bits, too few for these "
                "numbers")
            : "");
}

/* Lab 16: was an average taken after a step where none is due, or left out where one is due? */
bool averaged_at_wrong_step(const Evidence *e)
{
    const Label weights = e->want->label, large = averages_large_label();
    if (label_equal(&weights, &large))
        return large_step_is_wrong(e);
    if (weights.of != THE_WEIGHTS)
        return false;
    const int step = weights.step + 1, every = e->c->every;
    const int left_out = calls_left_out(e->trial, weights.index, step);
    char why[300], begins[200];
    if (left_out == 0)
        return false;
    if (left_out < 0)
        snprintf(why, sizeof why,
                 _("an average was taken after step %d, but none is due there: %d is not a "
                   "multiple of every=%d, and `last` is not set"),
                 step, step, every);
    else
        snprintf(why, sizeof why,
                 step % every == 0
                     ? _("no average was taken after step %d, but one is due: %d is a multiple of "
                         "every=%d")
                     : _("no average was taken after step %d, but one is due: `last` is set, so "
                         "the weights are evaluated or saved next"),
                 step, step, every);
    return says(e, "%s%s", why, where_count_begins(e->trial, weights.index, step, begins));
}

static bool same(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

/* The mean of the replicas' mean losses, and this replica's own numbers. */
typedef struct Brought {
    double mean, own[3];
} Brought;

static Brought brought(const Trial *t, int evaluation)
{
    Scenario run = {.c = *t->c};
    Brought all = {0};
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

/* The name of the first wrong sum, or of all three, if the mistake explains each wrong one; otherwise
 * NULL. */
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

/* The sum that results if the two halves of each double are added as floats. */
static double halves_added(const Case *c, int number, int evaluation)
{
    Scenario run = {.c = *c};
    float sum[2] = {0};
    double all;
    for (int replica = 0; replica < replicas_of(c); replica++) {
        const Metrics m = replica_metrics(&run, replica, evaluation);
        const double one = ((const double[]){m.loss_sum, m.correct, m.count})[number];
        float halves[2];
        memcpy(halves, &one, sizeof halves);
        sum[0] = replica == 0 ? halves[0] : sum[0] + halves[0];
        sum[1] = replica == 0 ? halves[1] : sum[1] + halves[1];
    }
    memcpy(&all, sum, sizeof all);
    return all;
}

static bool added_as_halves(const Evidence *e)
{
    const double all = halves_added(e->c, 0, e->want->label.step);
    return !same(e->is[0], e->right[0]) && fabs(e->is[0] - all) <= 1e-5 * fabs(all) &&
           says(e, _("doubles were added as if each were two floats: Metrics holds double "
                     "(MPI_DOUBLE)"));
}

/* Were the replicas' numbers and their sum rounded to floats or integers? */
static bool rounded(const Evidence *e)
{
    for (int i = 0; i < 3; i++)
        if (!(fabs(e->is[i] - e->right[i]) <= (e->c->world + 1) * 0x1p-23 * e->right[i]))
            return false;
    return says(e, _("the sums have lost precision: add and keep them as double, since float has "
                     "fewer digits and int has no fraction"));
}

static bool in_other_order(const Evidence *e)
{
    for (int i = 0; i < 3; i++)
        if (!same(e->is[i], e->right[0]) && !same(e->is[i], e->right[1]) &&
            !same(e->is[i], e->right[2]))
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

static bool metrics_of_stages_are_wrong(const Evidence *e)
{
    const double tp = e->c->tp, pp = e->c->pp;
    const bool last = stage_of_rank(e->c, e->trial->rank) == e->c->pp - 1;
    const Metrics all = of_all_replicas(e);
    const MetricsMistake mistakes[] = {
        {last ? 1 : 0, /* the last stage's own sums are right */
         {0},
         N_("%s is this stage's own: sum over the stages, mesh->pp")},
        {1 / pp,
         {0},
         N_("%s is divided by the number of stages, but only the last stage has counted rows")},
        {0,
         {all.loss_sum, all.correct, all.count},
         N_("%s is also summed over mesh->dp: metrics_synchronise does that afterwards")},
        {tp,
         {0},
         N_("%s is also summed over mesh->tp, whose ranks have all counted the same rows")},
        {0,
         {tp * all.loss_sum, tp * all.correct, tp * all.count},
         N_("%s is summed over the world: sum over the stages, mesh->pp")},
        {pp, {0}, N_("%s is summed over mesh->pp twice")},
    };
    return one_of(e, mistakes, sizeof mistakes / sizeof *mistakes) || is_of_another_replica(e) ||
           rounded(e) ||
           (in_other_order(e) && says(e, _("the sums are right, but stored in a different order")));
}

bool metrics_are_wrong(const Evidence *e)
{
    const Case *c = e->c;
    const double dp = replicas_of(c), tp = c->tp;
    if (e->want->check != METRICS || e->count != 3)
        return false;
    if (e->want->label.of == METRICS_OF_STAGES)
        return metrics_of_stages_are_wrong(e);
    if (e->want->label.of != METRICS_OF)
        return false;
    Brought all = brought(e->trial, e->want->label.step);
    const double n = e->right[2], loss = e->is[0];
    const MetricsMistake mistakes[] = {
        {1 / dp,
         {0},
         N_("%s is divided by the number of replicas: the caller divides by the "
            "count")},
        {0,
         {all.own[0], all.own[1], all.own[2]},
         N_("%s covers this replica only: all three must be summed over the replicas")},
        {0,
         {e->right[0] / n, e->right[1] / n, 1},
         N_("%s is divided by the count: the caller does that, once for all batches")},
        {tp,
         {0},
         N_("%s is summed over the world, which counts each row once per tp rank: sum "
            "over the replicas, mesh->dp")},
        {tp / dp,
         {0},
         N_("%s is summed over the world and divided by the number of replicas: sum "
            "over the replicas, mesh->dp, without a division")},
        {dp, {0}, N_("%s is summed over the replicas twice")},
    };
    if (dp > 1 &&
        (same(loss, all.mean) || same(loss, all.mean * dp) || same(loss / e->is[2], all.mean)))
        return says(e, _("it is an average of averages: this is wrong if replicas read different "
                         "numbers of rows"));
    return one_of(e, mistakes, sizeof mistakes / sizeof *mistakes) || added_as_halves(e) ||
           rounded(e) ||
           (in_other_order(e) && says(e, _("the sums are right, but stored in a different order")));
}
