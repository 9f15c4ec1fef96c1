/* Lab 17: how the weights are cut into parts, and what is wrong with squares and weights. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/sharded.h"

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* What is wrong with n parts of `count` numbers? @return whether anything is */
static bool are_no_parts(int64_t count, int n, const double *numbers, char why[300])
{
    const int64_t longest = (count + n - 1) / n;
    int64_t end = 0;
    for (int k = 0; k < n; k++) {
        const int64_t begin = (int64_t)numbers[2 * k], behind = (int64_t)numbers[2 * k + 1];
        const bool follows = begin == end && behind >= begin && behind <= count;
        if (follows && behind - begin <= longest) {
            end = behind;
            continue;
        }
        snprintf(why, 300,
                 follows ? _("of %lld numbers in %d parts, part %d is %lld to %lld: longer than "
                             "count / n, rounded up, and so is the optimiser's state")
                         : _("of %lld numbers in %d parts, part %d is %lld to %lld: the parts must "
                             "follow each other"),
                 (long long)count, n, k, (long long)begin, (long long)behind);
        return true;
    }
    snprintf(why, 300, _("of %lld numbers in %d parts, the last part ends at %lld"),
             (long long)count, n, (long long)end);
    return end != count;
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
        if (are_no_parts(count, n, numbers_of(entry), why))
            fail(t, ARITHMETIC, EXPLAINED, _("optimizer_part: %s (%s)"), why, t->sizes);
    }
}

/* ---- squares ---------------------------------------------------------------------------------------------------- */

/* The sum of the squares that these ranks bring: of split parameters (0), or of whole ones (1). */
static double brought(const Evidence *e, Members by, int whole)
{
    const Label l = e->want->label;
    Scenario run = {.c = *e->c};
    double sum = 0;
    for (int i = 0; i < by.count; i++)
        sum += sharded_squares(&run, by.first + i * by.stride, l.detail, l.step, whole);
    return sum;
}

static bool is_number(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

/* Is each wrong one of the two what these ranks bring, times a factor? */
static bool both_are(const Evidence *e, Members by, double factor)
{
    int wrong = 0;
    for (int i = 0; i < 2; i++) {
        if (is_number(e->is[i], e->right[i]))
            continue;
        if (!is_number(e->is[i], factor * brought(e, by, i)))
            return false;
        wrong++;
    }
    return wrong > 0;
}

static bool are_roots(const Evidence *e)
{
    return is_number(e->is[0] * e->is[0], e->right[0]) &&
           is_number(e->is[1] * e->is[1], e->right[1]);
}

bool squares_are_wrong(const Evidence *e)
{
    const Label l = e->want->label;
    if (l.of != OF_SHARDS || l.index != SHARDED_SQUARES || e->count != 2)
        return false;
    const int rank = e->trial->rank;
    const Members own = {rank, 1, 1}, tp = tp_group(e->c, rank), dp = group_members(e->c, DP, rank),
                  all = {0, 1, e->c->world};
    const double n = replicas_of(e->c);
    if (both_are(e, own, 1))
        return says(e, _("these are the squares of this replica's part: the norm is that of all "
                         "parts, so sum them over the replicas"));
    if (both_are(e, all, 1))
        return says(e, _("the squares are summed over the world: sum over the replicas, mesh->dp; "
                         "gradient_norm sums over mesh->tp"));
    if (both_are(e, tp, 1))
        return says(e, _("the squares are summed over mesh->tp, which gradient_norm does: sum over "
                         "the replicas, mesh->dp, which have the other parts"));
    if (both_are(e, dp, 1 / n))
        return says(e,
                    _("the squares are divided by the number of replicas: each replica has those "
                      "of another part, so their sum is that of the whole gradient"));
    if (both_are(e, dp, n))
        return says(e, _("the squares are summed over the replicas twice"));
    if (are_roots(e))
        return says(e,
                    _("these are roots: gradient_norm adds the squares of other ranks, and takes "
                      "the root at the end"));
    if (is_number(e->is[0], e->right[1]) && is_number(e->is[1], e->right[0]))
        return says(e, _("the two sums are exchanged"));
    return fabs(e->is[0] - e->right[0]) <= 1e-6 * e->right[0] &&
           fabs(e->is[1] - e->right[1]) <= 1e-6 * e->right[1] &&
           says(e, _("the squares have lost digits: add and keep them as double, since float is a "
                     "shorter number format"));
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

/* The weights before a step: what was expected after the step before, or the first ones. */
static void weights_before(const Evidence *e, double *before)
{
    Label l = e->want->label;
    l.step--;
    const Entry *then = find_entry(e->trial->expected.all, VALUES, l);
    if (then) {
        memcpy(before, numbers_of(then), (size_t)e->count * sizeof *before);
        return;
    }
    Mesh mesh = {.tp_degree = 1, .dp_degree = 1, .pp_degree = 1};
    Scenario run = {.c = *e->c, .mesh = &mesh, .pool = pool_new(0, false)};
    run.tape = tape_new(run.pool, &mesh);
    tape_reset(run.tape, (TapeBatch){.seed = e->c->key});
    memcpy(before, reals(sharded_first_weights(&run, e->trial->rank, l.detail)),
           (size_t)e->count * sizeof *before);
    tape_free(run.tape);
    pool_free(run.pool);
}

/* ---- groups, and parts ------------------------------------------------------------------------------------------- */

/* Does this function exchange in another group than the replicas'? */
bool shards_in_other_group(const Evidence *e)
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
                        _("%s exchanges with other ranks than those that hold the same weights: "
                          "the group is mesh->dp"),
                        sharded_functions[l.index]);
    }
    return false;
}

/* Are the weights right in this replica's part, and only there? */
bool only_own_part_is_right(const Evidence *e)
{
    const Label l = e->want->label;
    const Entry *own =
        l.of == OF_SHARDS && l.index == SHARDED_STEP
            ? entry_of_rank(e->trial, e->trial->rank, VALUES,
                            sharded_label(VALUE_OF, SHARDED_REDUCE, l.detail, l.step))
            : NULL;
    if (!own || own->begin >= own->end || e->wrong == 0)
        return false;
    for (int64_t i = own->begin; i < own->end && i < e->count; i++)
        if (!is_right(e, i))
            return false;
    return says(e, _("this replica's part is right, but another part is not: each replica must "
                     "step its own part of the weights with the same part of the gradients, and "
                     "give it to the others as it is"));
}

/* How many wrong numbers are those before the step. */
static int64_t stale(const Evidence *e)
{
    double *before = malloc((size_t)e->count * sizeof *before + 1);
    int64_t found = 0;
    weights_before(e, before);
    for (int64_t i = 0; i < e->count; i++)
        found += !is_right(e, i) && fabs(e->is[i] - before[i]) <= e->tolerance;
    free(before);
    return found;
}

/* What this rank's call of sharded_step has sent, in calls of MPI. */
static double calls_of_step(const Evidence *e)
{
    enum { CALLS = 1 };
    Label call = e->want->label;
    call.what = CALL_OF;
    const Entry *sent = entry_of_rank(e->trial, e->trial->rank, TRAFFIC, call);
    return sent && sent->count > CALLS ? numbers_of(sent)[CALLS] : 0;
}

bool weights_are_stale(const Evidence *e)
{
    const Label l = e->want->label;
    if (l.of != OF_SHARDS || l.index != SHARDED_STEP || e->wrong == 0 || stale(e) < e->wrong)
        return false;
    if (e->wrong == e->count)
        return says(e, _("all weights are those before the step: optimizer_update changes the "
                         "numbers of the tensor that it is given, so give it a slice, not a copy"));
    if (calls_of_step(e) == 0)
        return says(e,
                    _("outside of this replica's part, the weights are those before the step: "
                      "the replicas that made it must give them to all, group_all_gather_parts"));
    return says(e,
                _("%lld of %lld weights are those before the step: the parts must be gathered "
                  "after optimizer_update, into `weights` itself"),
                (long long)e->wrong, (long long)e->count);
}
