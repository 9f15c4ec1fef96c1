/* Lab 17: checks how weights are split into parts and who exchanges; explains wrong squares. */
#include "grader/labs/17-sharded-optimizer/shard_numbers.h"

#include <math.h>

#include "grader/labs/shared/wrong_metrics.h"

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* Writes what is wrong with n parts of `count` numbers. @return whether anything is */
static bool are_no_parts(int64_t count, int n, const double *numbers, char why[300])
{
    const int64_t longest = (count + n - 1) / n;
    const char *narrow =
        count <= INT32_MAX / n
            ? ""
            : _(". Compute with int64_t: int ends at 2147483647, and float has 24 bits");
    int64_t end = 0;
    for (int k = 0; k < n; k++) {
        const int64_t begin = (int64_t)numbers[2 * k], behind = (int64_t)numbers[2 * k + 1];
        const bool follows = begin == end && behind >= begin && behind <= count;
        if (follows && behind - begin <= longest) {
            end = behind;
            continue;
        }
        snprintf(why, 300,
                 follows
                     ? _("with %lld numbers in %d parts, part %d runs from %lld to %lld: longer "
                         "than count / n, rounded up, which also makes the optimiser's state too "
                         "large%s")
                     : _("with %lld numbers in %d parts, part %d runs from %lld to %lld: the parts "
                         "must follow each other%s"),
                 (long long)count, n, k, (long long)begin, (long long)behind, narrow);
        return true;
    }
    snprintf(why, 300, _("with %lld numbers in %d parts, the last part ends at %lld%s"),
             (long long)count, n, (long long)end, narrow);
    return end != count;
}

/* Does a replica with the longest part save less than half of the memory that it should? */
static bool one_has_nearly_all(int64_t count, int n, const double *numbers)
{
    const double each = ceil((double)count / n);
    double most = 0;
    for (int k = 0; k < n; k++)
        most = fmax(most, numbers[2 * k + 1] - numbers[2 * k]);
    return count >= n && 2 * ((double)count - most) < (double)count - each;
}

void compare_sharded_parts(Trial *t)
{
    char why[300];
    for (int cut = 0; cut < SHARDED_CUTS; cut++) {
        const Entry *entry = entry_of_rank(t, 0, VALUES, sharded_cut_label(cut));
        const int n = sharded_parts(t->c, cut);
        const int64_t count = cut == 0 ? sharded_weights(t->c) : sharded_counts[cut];
        if (!entry || entry->count != 2 * n)
            return;
        t->result->unsharded |= cut == 0 && one_has_nearly_all(count, n, numbers_of(entry));
        if (are_no_parts(count, n, numbers_of(entry), why))
            fail(t, ARITHMETIC, EXPLAINED, _("optimizer_part: %s (%s)"), why, t->sizes);
    }
}

/* ---- squares ---------------------------------------------------------------------------------------------------- */

/* The function that a lab applies to a rank's sum of squares before it adds these sums. */
typedef double Made(double square);

static double itself(double square)
{
    return square;
}

static double squared(double square)
{
    return square * square;
}

/* The sum of these ranks' contributions for split parameters (0) or for whole ones (1). */
static double brought(const Evidence *e, Members by, int whole, Made *made)
{
    const Label l = e->want->label;
    Scenario run = {.c = *e->c};
    double sum = 0;
    for (int i = 0; i < by.count; i++) {
        const int rank = by.first + i * by.stride;
        sum += made(sharded_squares(&run, rank, l.detail, l.step, whole));
    }
    return sum;
}

static bool is_number(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

static bool is_sum(const Evidence *e, Members by, int whole, Made *made, double factor)
{
    return is_number(e->is[whole], factor * brought(e, by, whole, made));
}

/* Is each wrong one of the two sums `factor` times the sum of `made` over these ranks' squares? */
static bool both_are_made(const Evidence *e, Members by, Made *made, double factor)
{
    int wrong = 0;
    for (int i = 0; i < 2; i++) {
        if (is_number(e->is[i], e->right[i]))
            continue;
        if (!is_sum(e, by, i, made, factor))
            return false;
        wrong++;
    }
    return wrong > 0;
}

static bool both_are(const Evidence *e, Members by, double factor)
{
    return both_are_made(e, by, itself, factor);
}

/* The replica whose squares all replicas have in place of the wrong sums, or -1. */
static int replica_of_all(const Evidence *e, Members dp)
{
    for (int k = 0; k < dp.count; k++) {
        const Members one = {dp.first + k * dp.stride, 1, 1};
        bool all = both_are(e, one, 1);
        for (int i = 0; i < dp.count && all; i++) {
            const Entry *other =
                entry_of_rank(e->trial, dp.first + i * dp.stride, VALUES, e->want->label);
            all = other && other->count == e->count &&
                  close_to(numbers_of(other), e->is, 1, e->count, 0);
        }
        if (all)
            return k;
    }
    return -1;
}

static bool are_roots(const Evidence *e)
{
    return is_number(e->is[0] * e->is[0], e->right[0]) &&
           is_number(e->is[1] * e->is[1], e->right[1]);
}

static bool one_is_summed_twice(const Evidence *e, Members own, Members dp)
{
    static const char *const names[] = {"*shards", "*whole"};
    for (int i = 0; i < 2; i++)
        if (is_sum(e, dp, i, itself, dp.count) && is_sum(e, own, 1 - i, itself, 1))
            return says(e, _("%s is summed over the replicas twice, and %s not at all"), names[i],
                        names[1 - i]);
    return false;
}

/* Are the right squares summed, but changed before or after, or mixed up between the two sums? */
static bool made_otherwise(const Evidence *e, Members dp)
{
    if (are_roots(e) || both_are_made(e, dp, sqrt, 1))
        return says(e,
                    _("these are roots: gradient_norm adds the squares of other ranks, and takes "
                      "the root at the end"));
    if (both_are_made(e, dp, squared, 1))
        return says(e, _("the squares are squared again: the arguments are already sums of "
                         "squares"));
    if (is_number(e->is[0], e->right[1]) && is_number(e->is[1], e->right[0]))
        return says(e, _("the two sums are swapped"));
    for (int i = 0; i < 2; i++)
        if ((e->is[1 - i] == 0 || is_number(e->is[1 - i], e->right[1 - i])) &&
            is_number(e->is[i], e->right[0] + e->right[1]))
            return says(e, _("the two sums are added up: keep them apart, since gradient_norm sums "
                             "*shards over mesh->tp, but not *whole"));
    return fabs(e->is[0] - e->right[0]) <= 1e-6 * e->right[0] &&
           fabs(e->is[1] - e->right[1]) <= 1e-6 * e->right[1] &&
           says(e, _("the squares have lost precision: add and keep them as double, since float "
                     "has fewer digits"));
}

/* Are these the squares of other ranks, or is their sum not what it should be? */
static bool summed_otherwise(const Evidence *e, Members dp)
{
    const Members own = {e->trial->rank, 1, 1}, tp = tp_group(e->c, e->trial->rank),
                  all = {0, 1, e->c->world};
    if (one_is_summed_twice(e, own, dp))
        return true;
    const int replica = dp.count > 1 ? replica_of_all(e, dp) : -1;
    if (replica >= 0)
        return says(e,
                    _("every replica has the squares of replica %d's part alone: the norm covers "
                      "all parts, so sum the squares over the replicas"),
                    replica);
    if (both_are(e, own, 1)) {
        const Label l = e->want->label;
        return says(
            e, have_sent_enough(e->trial, sharded_label(CALL_OF, l.index, l.detail, l.step))
                   ? _("the ranks have exchanged as many numbers as both sums need, but these are "
                       "the squares of this replica's part alone: the sums must be in *shards and "
                       "*whole")
                   : _("these are the squares of this replica's part alone: the norm covers all "
                       "parts, so sum the squares over the replicas"));
    }
    if (both_are(e, all, 1))
        return says(e, _("the squares are summed over the world: sum over the replicas, mesh->dp; "
                         "gradient_norm sums over mesh->tp"));
    if (both_are(e, tp, 1))
        return says(
            e, _("the squares are summed over mesh->tp: sum over the replicas, mesh->dp, which "
                 "have the other parts"));
    if (both_are(e, dp, 1.0 / dp.count))
        return says(e, _("the squares are divided by the number of replicas: each replica has the "
                         "squares of another part, so their sum covers the whole gradient"));
    if (both_are(e, dp, 1.0 / e->c->tp))
        return says(e, _("the squares are divided by the size of the tp group: *whole is "
                         "the same on all of its ranks, and gradient_norm counts it once"));
    return both_are(e, dp, dp.count) &&
           says(e,
                _("the sum of the squares is multiplied by the number of replicas, as if it were "
                  "summed over them a second time"));
}

static bool squares_are_wrong(const Evidence *e)
{
    const Label l = e->want->label;
    if (l.of != OF_SHARDS || l.index != SHARDED_SQUARES || e->count != SHARDED_NUMBERS)
        return false;
    const Members dp = group_members(e->c, DP, e->trial->rank);
    if (e->is[2] != 0)
        return says(
            e, _("a number next to *shards or *whole has changed: the two need not be adjacent in "
                 "memory, so sum each of them as one number, or copy both into an array first"));
    const bool shards = is_number(e->is[0], e->right[0]), whole = is_number(e->is[1], e->right[1]);
    char why[600];
    Evidence one = *e;
    one.text = why;
    one.size = sizeof why;
    return (summed_otherwise(&one, dp) || made_otherwise(&one, dp)) &&
           says(e, "%s%s",
                shards == whole ? ""
                : shards        ? _("*shards is right, but not *whole: ")
                                : _("*whole is right, but not *shards: "),
                why);
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

/* Does this function exchange in a group other than the replicas'? */
static bool shards_in_other_group(const Evidence *e)
{
    const Label l = e->want->label;
    const Calls *calls = e->trial->outcome->calls;
    const int rank = e->trial->rank;
    const Members dp = group_members(e->c, DP, rank);
    const Label call_of = sharded_label(CALL_OF, l.index, l.detail, l.step);
    uint64_t replicas = 0;
    for (int i = 0; i < dp.count; i++)
        replicas |= UINT64_C(1) << (dp.first + i * dp.stride);
    for (int64_t i = 0; l.of == OF_SHARDS && calls && i < calls->rank[rank].count; i++) {
        const Call *call = &calls->rank[rank].call[i];
        if (label_equal(&call->where, &call_of) && call->members != replicas &&
            (call->rule == REDUCTION || call->rule == EXCHANGE))
            return says(e,
                        _("%s does not exchange with exactly the ranks that hold the same weights: "
                          "use the group mesh->dp"),
                        sharded_functions[l.index]);
    }
    return false;
}

Finder *const shards_reasons[] = {squares_are_wrong,      weights_are_stale,
                                  shards_in_other_group,  gradients_are_elsewhere,
                                  only_own_part_is_right, NULL};
Finder *const shards_more_reasons[] = {metrics_are_wrong, NULL};
