/* Lab 11: explains a wrong mean of gradients or a wrong sum of metrics. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
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

static bool same(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

/* What each replica contributes: the mean of the mean losses, and this replica's own numbers. */
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

/* The first of the three that is this replica's own if all others are right; or -1. */
static int left_alone(const Evidence *e, const double own[3])
{
    int first = -1;
    for (int i = 2; i >= 0; i--) {
        if (same(e->is[i], own[i]) && !same(e->is[i], e->right[i]))
            first = i;
        else if (!same(e->is[i], e->right[i]))
            return -1;
    }
    return first;
}

/* The one of the three that is right except for a division by the number of replicas, if the others
 * are right; or -1. */
static int divided_alone(const Evidence *e, int dp)
{
    int divided = -1;
    for (int i = 0; i < 3; i++) {
        if (same(e->is[i], e->right[i]))
            continue;
        if (divided >= 0 || !same(e->is[i] * dp, e->right[i]))
            return -1;
        divided = i;
    }
    return divided;
}

static bool in_other_order(const Evidence *e)
{
    for (int i = 0; i < 3; i++)
        if (!same(e->is[i], e->right[0]) && !same(e->is[i], e->right[1]) &&
            !same(e->is[i], e->right[2]))
            return false;
    return true;
}

bool metrics_are_wrong(const Evidence *e)
{
    static const char *const names[] = {"loss_sum", "correct", "count"};
    int dp = replicas_of(e->c);
    if (e->want->check != METRICS || e->count != 3)
        return false;
    Brought all = brought(e->trial, e->want->label.step);
    int alone = left_alone(e, all.own);
    double loss = e->is[0];
    int divided = divided_alone(e, dp);
    if (divided >= 0)
        return says(e,
                    _("%s is divided by the number of replicas: the caller divides by the count"),
                    names[divided]);
    if (dp > 1 &&
        (same(loss, all.mean) || same(loss, all.mean * dp) || same(loss / e->is[2], all.mean)))
        return says(e, _("it is an average of averages: this is wrong if replicas read different "
                         "numbers of rows"));
    if (close_to(e->is, e->right, 1.0 / dp, 3, e->tolerance))
        return says(e, _("the sums are divided by the number of replicas: the caller divides by "
                         "the count"));
    if (alone >= 0)
        return says(e, _("%s covers this replica only: all three must be summed over the replicas"),
                    names[alone]);
    return in_other_order(e) && says(e, _("the sums are right, but stored in another order"));
}
