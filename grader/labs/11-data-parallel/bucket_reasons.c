/* Lab 11: how are the buckets divided? */
#include <math.h>

#include "grader/judge/diagnose/contributions.h"
#include "grader/labs/replicas.h"
#include "grader/labs/shared/wrong_metrics.h"

/* A few wrong numbers say nothing about a bucket, and a small bucket may be right by chance. */
bool other_bucket_is_right(const Evidence *e)
{
    Label bucket = e->want->label;
    if (bucket.of != A_BUCKET || 2 * e->wrong <= e->count)
        return false;
    for (int i = 0; i < replica_buckets(bucket.step); i++) {
        bucket.index = i;
        const Entry *want = find_entry(e->trial->expected.all, VALUES, bucket),
                    *got = entry_of_rank(e->trial, e->trial->rank, VALUES, bucket);
        if (want && got && got->count == want->count &&
            close_to(numbers_of(got), numbers_of(want), 1, got->count, e->tolerance))
            return says(e, _("not all of the buckets are treated alike; in this one: "));
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

/* In a round of several buckets, is the first divided once for each bucket, and no other bucket at
 * all? */
static bool only_first_divided(const Evidence *e)
{
    const int round = e->want->label.step, count = replica_buckets(round);
    const double dp = replicas_of(e->c);
    if (e->want->label.of != A_BUCKET || count < 2 || dp < 2)
        return false;
    for (int i = 0; i < count; i++) {
        const double divisor =
            divisor_of(e->trial, label_of(GRADIENT_OF, A_BUCKET, i, round), e->tolerance);
        const double found = i == 0 ? pow(dp, count) : 1;
        if (!(fabs(divisor - found) < 1e-3 * found))
            return false;
    }
    return says(e, _("the first bucket is divided once for each bucket, and the others are not "
                     "divided: divide buckets[i] in the loop over i"));
}

/* Is the sum in each bucket divided by this number times the number of buckets of its round? */
static bool is_divided_by_buckets(const Evidence *e, int times)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < replica_buckets(round); i++) {
            double divisor =
                divisor_of(e->trial, label_of(GRADIENT_OF, A_BUCKET, i, round), e->tolerance);
            if (!(fabs(divisor - times * replica_buckets(round)) < 1e-3))
                return false;
        }
    return true;
}

static bool divided_by_bucket_count(const Evidence *e)
{
    if (e->want->check != GRADIENT)
        return false;
    return only_first_divided(e) ||
           ((is_divided_by_buckets(e, 1) || is_divided_by_buckets(e, replicas_of(e->c))) &&
            says(e, _("it is divided by the number of buckets: divide by the number of replicas, "
                      "and by nothing else")));
}

/* Were all sums of this round exchanged, although its buckets hold this replica's own numbers? */
static bool summed_elsewhere(const Evidence *e)
{
    const Label l = e->want->label;
    return l.of == A_BUCKET && is_own_though_summed(e, label_of(GRADIENT_OF, A_ROUND, 0, l.step)) &&
           says(e, _("the ranks have exchanged the sums, but this is the replica's own value: the "
                     "sum must be in bucket->gradients itself, where "
                     "group_all_reduce_start(mesh->dp, bucket->gradients) puts it"));
}

Finder *const replicas_reasons[] = {divided_by_bucket_count, summed_elsewhere, NULL};
Finder *const replicas_more_reasons[] = {metrics_are_wrong, NULL};
