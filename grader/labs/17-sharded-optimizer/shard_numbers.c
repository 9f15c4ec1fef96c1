/* Lab 17: finds what wrong gradients and wrong weights are made of. */
#include "grader/labs/17-sharded-optimizer/shard_numbers.h"

#include <math.h>
#include <stdlib.h>

/* The weights before a step: those expected after the previous step, or the initial ones. */
static void weights_before(const Evidence *e, double *before)
{
    Label l = e->want->label;
    l.step--;
    const Entry *then = find_entry(e->trial->expected.all, VALUES, l);
    if (then) {
        memcpy(before, numbers_of(then), (size_t)e->count * sizeof *before);
        return;
    }
    Scenario in = scenario_alone(e->c, (Stream){0});
    memcpy(before, reals(sharded_first_weights(&in, e->trial->rank, l.detail)),
           (size_t)e->count * sizeof *before);
    scenario_close(&in);
}

/* The gradients that a rank wrote in this step for its replica's part, or NULL. */
static const Entry *part_of(const Evidence *e, int rank)
{
    const Label l = e->want->label;
    return entry_of_rank(e->trial, rank, VALUES,
                         sharded_label(VALUE_OF, SHARDED_REDUCE, l.detail, l.step));
}

/* Has a replica sent numbers in the function of this entry? */
static bool is_exchanged(const Evidence *e)
{
    const Members dp = group_members(e->c, DP, e->trial->rank);
    Label call = e->want->label;
    call.what = CALL_OF;
    for (int k = 0; k < dp.count; k++) {
        const Entry *sent = entry_of_rank(e->trial, dp.first + k * dp.stride, TRAFFIC, call);
        if (sent && sent->count > 0 && numbers_of(sent)[0] > 0)
            return true;
    }
    return false;
}

/* ---- gradients ---------------------------------------------------------------------------------------------------- */

/* Is each wrong number this rank's own gradient, times a factor? */
static bool wrong_ones_are_own(const Evidence *e, double factor)
{
    bool own = true;
    Scenario in = scenario_alone(e->c, (Stream){0});
    const Label l = e->want->label;
    const real *mine = reals(sharded_gradient(&in, e->trial->rank, l.detail, l.step));
    for (int64_t i = 0; i < e->count && own; i++)
        own = is_right(e, i) ||
              fabs(e->is[i] - factor * mine[global_index(e->got, i)]) <= e->tolerance;
    scenario_close(&in);
    return own;
}

/* Does each replica have the sum, times a number of its own? */
static bool divided_by_rank(const Evidence *e)
{
    const Members dp = group_members(e->c, DP, e->trial->rank);
    double first = NAN, other = NAN;
    for (int i = 0; i < dp.count; i++) {
        const Entry *part = part_of(e, dp.first + i * dp.stride);
        if (!part || part->count != part->end - part->begin)
            return false;
        if (part->count == 0)
            continue;
        const double *is = numbers_of(part), *right = numbers_of(e->want) + part->begin;
        const double factor = is[0] / right[0];
        if (!close_to(is, right, factor, part->count, fmax(1, factor) * e->tolerance))
            return false;
        other = fabs(factor - first) > 1e-3 ? factor : other;
        first = isnan(first) ? factor : first;
    }
    return !isnan(other) &&
           says(e,
                _("it is the sum over the replicas, divided by %.4g on one replica and by %.4g on "
                  "another: each divides its own part, that of mesh->dp_rank, by mesh->dp_degree"),
                replicas_of(e->c) / first, replicas_of(e->c) / other);
}

bool gradients_are_elsewhere(const Evidence *e)
{
    const Label l = e->want->label;
    if (l.of != OF_SHARDS || l.index != SHARDED_REDUCE || e->wrong == 0)
        return false;
    if (divided_by_rank(e))
        return true;
    if (!is_exchanged(e) ||
        !(wrong_ones_are_own(e, 1) || wrong_ones_are_own(e, 1.0 / replicas_of(e->c))))
        return false;
    if (e->wrong < e->count)
        return says(e,
                    _("%lld of %lld numbers of this replica's part are this replica's own "
                      "gradients, and the others are right: the reduce-scatter must split the "
                      "gradients as optimizer_part does"),
                    (long long)e->wrong, (long long)e->count);
    return says(e, _("these are this replica's own gradients: what the ranks have reduced is not "
                     "in this replica's part of `gradients`. MPI_Reduce_scatter writes it at the "
                     "beginning of its receive buffer; group_all_reduce returns it"));
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/* Are the weights right in this replica's part, but not everywhere? */
bool only_own_part_is_right(const Evidence *e)
{
    const Label l = e->want->label;
    const Entry *own =
        l.of == OF_SHARDS && l.index == SHARDED_STEP ? part_of(e, e->trial->rank) : NULL;
    if (!own || own->begin >= own->end || e->wrong == 0)
        return false;
    for (int64_t i = own->begin; i < own->end && i < e->count; i++)
        if (!is_right(e, i))
            return false;
    return says(e, _("this replica's part is right, but another part is not: each replica must "
                     "update its own part of the weights with the same part of the gradients, and "
                     "give it to the others as it is"));
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

static bool is_stale(const Evidence *e, const double *before, int64_t i)
{
    return !is_right(e, i) && fabs(e->is[i] - before[i]) <= e->tolerance;
}

/* How many weights of begin..end are wrong because they still have their old values. */
static int64_t stale(const Evidence *e, const double *before, int64_t begin, int64_t end)
{
    int64_t found = 0;
    for (int64_t i = begin; i < end && i < e->count; i++)
        found += is_stale(e, before, i);
    return found;
}

/* The ranks exchange, but some weights keep their old values: which do not arrive, whole parts or
 * pieces of parts? */
static bool arrives_in_pieces(const Evidence *e, const double *before)
{
    const Members dp = group_members(e->c, DP, e->trial->rank);
    int arrived = 0, missing = -1;
    for (int k = 0; k < dp.count; k++) {
        const Entry *part = part_of(e, dp.first + k * dp.stride);
        if (!part)
            return false;
        const int64_t count = part->end - part->begin,
                      old = stale(e, before, part->begin, part->end);
        if (old > 0 && old < count)
            return says(e,
                        _("%lld of the %lld weights that replica %d has updated kept their values "
                          "from before the step, and the others are right: the gather must split "
                          "the weights as optimizer_part does"),
                        (long long)old, (long long)count, k);
        missing = old > 0 && missing < 0 ? k : missing;
        arrived += old == 0 && count > 0 && dp.first + k * dp.stride != e->trial->rank;
    }
    return missing >= 0 && arrived > 0 &&
           says(e,
                _("the weights that replica %d has updated do not arrive here: they still have "
                  "their values from before the step, and the weights of other replicas are right"),
                missing);
}

/* Does a replica itself hold its own part as it was before the step? */
static bool own_part_is_stale(const Evidence *e, const double *before)
{
    const Members dp = group_members(e->c, DP, e->trial->rank);
    for (int k = 0; k < dp.count; k++) {
        const int rank = dp.first + k * dp.stride;
        const Entry *part = part_of(e, rank),
                    *weights = entry_of_rank(e->trial, rank, VALUES, e->want->label);
        if (!part || part->begin == part->end || !weights || weights->count != e->count)
            continue;
        Evidence there = *e;
        there.is = numbers_of(weights);
        if (stale(&there, before, part->begin, part->end) == part->end - part->begin)
            return says(
                e,
                _("replica %d still has its own part, %lld to %lld, as it was before the step: it "
                  "has updated a part other than that of mesh->dp_rank, or what it has received "
                  "has overwritten its own"),
                k, (long long)part->begin, (long long)part->end);
    }
    return false;
}

/* Does the kit, and no line of the lab, end a rank's case: because it has updated nothing? */
static bool update_is_missing(const Trial *t)
{
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *ended = first_entry(t->outcome->wrote[rank], REFUSED);
        if (ended && !line_of(ended->address)[0])
            return true;
    }
    return false;
}

/* Has another replica a weight that is not as it was before the step? Perhaps, if it did not return. */
static bool others_may_have_stepped(const Evidence *e, const double *before)
{
    const Members dp = group_members(e->c, DP, e->trial->rank);
    for (int k = 0; k < dp.count; k++) {
        Evidence there = *e;
        const Entry *weights =
            entry_of_rank(e->trial, dp.first + k * dp.stride, VALUES, e->want->label);
        if (!weights || weights->count != e->count)
            return true;
        there.is = numbers_of(weights);
        if (stale(&there, before, 0, e->count) < e->count)
            return true;
    }
    return false;
}

static bool says_stale(const Evidence *e, const double *before)
{
    char refusal[512];
    if (stale(e, before, 0, e->count) < e->wrong)
        return false;
    if (update_is_missing(e->trial) &&
        refusal_text(e->c, e->trial->outcome, refusal, sizeof refusal))
        return says(e, "%s", refusal);
    const Entry *own = part_of(e, e->trial->rank);
    if (e->wrong < e->count && own_part_is_stale(e, before))
        return true;
    if (e->wrong == e->count && !others_may_have_stepped(e, before))
        return says(e,
                    _("on every replica, all weights still have their values from before the step: "
                      "does optimizer_update get a slice of `weights`, and the gradients?"));
    if (e->wrong == e->count && own && own->begin == own->end)
        return says(e, _("this replica's part is empty, and it has not received the new weights of "
                         "the others: it must take part in the all-gather, too"));
    if (e->wrong == e->count)
        return says(
            e,
            _("all weights still have their values from before the step: optimizer_update changes "
              "its first argument, which must be a slice of `weights`, not a copy"));
    if (!is_exchanged(e))
        return says(e, _("outside this replica's part, the weights still have their values from "
                         "before the step: each replica must give its new weights to all others, "
                         "group_all_gather_parts"));
    return arrives_in_pieces(e, before) ||
           says(e,
                _("%lld of %lld weights kept their values from before the step: the parts must be "
                  "gathered after optimizer_update, into `weights` itself"),
                (long long)e->wrong, (long long)e->count);
}

/* Only one replica updates a weight. Is each weight `factor` times the sum of that replica's new
 * value and the old values of the others? */
static bool are_mixed(const Evidence *e, const double *before, double factor)
{
    const double others = replicas_of(e->c) - 1;
    for (int64_t i = 0; i < e->count; i++)
        if (!(fabs(e->is[i] - factor * (e->right[i] + others * before[i])) <= 4 * e->tolerance))
            return false;
    return true;
}

static bool says_mixed(const Evidence *e, const double *before)
{
    const double n = replicas_of(e->c);
    if (n > 1 && are_mixed(e, before, 1 / n))
        return says(e, _("this is the mean of all replicas' weights, but only one replica has "
                         "updated each weight: an all-gather takes each weight from that replica"));
    return n > 1 && are_mixed(e, before, 1) &&
           says(e, _("this is the sum of all replicas' weights: an all-gather takes each weight "
                     "from the replica that has updated it"));
}

/* A gradient that the first step may have used in each replica's part instead of the mean. */
typedef struct OtherGradient {
    double others; /* how many times the gradients of the other replicas are added to the mean */
    double factor; /* of the sum */
    const char *sentence;
} OtherGradient;

/* Are the weights in one replica's part those after the first step with this gradient? */
static bool part_is_stepped_with(const Evidence *e, Scenario *in, int rank,
                                 const OtherGradient *with)
{
    const Label l = e->want->label;
    const Members dp = group_members(e->c, DP, rank);
    const Entry *part = part_of(e, rank);
    Tensor *g = sharded_mean(in, rank, l.detail, l.step),
           *w = sharded_first_weights(in, rank, l.detail);
    for (int k = 0; k < dp.count && with->others != 0; k++) {
        const int other = dp.first + k * dp.stride;
        const real *theirs = reals(sharded_gradient(in, other, l.detail, l.step));
        for (int64_t i = 0; i < e->count && other != rank; i++)
            reals(g)[i] += (real)with->others * theirs[i];
    }
    for (int64_t i = 0; i < e->count; i++)
        reals(g)[i] *= (real)with->factor;
    sharded_make_step(in, l.step, w, g, sharded_zeros(in), sharded_zeros(in));
    return part && close_to(e->is + part->begin, reals(w) + part->begin, 1, part->end - part->begin,
                            4 * e->tolerance);
}

static bool is_stepped_with(const Evidence *e, const OtherGradient *with)
{
    const Members dp = group_members(e->c, DP, e->trial->rank);
    bool all = true;
    for (int k = 0; k < dp.count && all; k++) {
        Scenario in = scenario_alone(e->c, (Stream){0});
        all = part_is_stepped_with(e, &in, dp.first + k * dp.stride, with);
        scenario_close(&in);
    }
    return all;
}

static bool says_other_gradient(const Evidence *e)
{
    const double n = replicas_of(e->c);
    const OtherGradient gradients[] = {
        {0, 1 / n,
         N_("the step uses the mean divided by the number of replicas once more: "
            "reduce_scatter_gradients has already made `gradients` the mean")},
        {0, n,
         N_("the step uses the sum of the gradients: it must use their mean, which "
            "`gradients` holds")},
        {1, 1,
         N_("sharded_step reduces the gradients once more: in this replica's part, `gradients` "
            "already holds the mean from reduce_scatter_gradients")},
        {1, 1 / n,
         N_("sharded_step reduces and divides the gradients once more: in this replica's part, "
            "`gradients` already holds the mean from reduce_scatter_gradients")},
    };
    if (e->want->label.step > 0 || n == 1)
        return false;
    for (size_t i = 0; i < sizeof gradients / sizeof *gradients; i++)
        if (is_stepped_with(e, &gradients[i]))
            return says(e, "%s", _(gradients[i].sentence));
    return false;
}

bool weights_are_stale(const Evidence *e)
{
    const Label l = e->want->label;
    if (l.of != OF_SHARDS || l.index != SHARDED_STEP || e->wrong == 0)
        return false;
    double *before = malloc((size_t)e->count * sizeof *before + 1);
    weights_before(e, before);
    const bool found = says_stale(e, before) || says_mixed(e, before) || says_other_gradient(e);
    free(before);
    return found;
}
