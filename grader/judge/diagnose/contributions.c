/* Determines how the result is composed of the ranks' contributions. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/diagnose/contributions.h"
#include "grader/labs/groups.h"

/* ---- which contributions the result has ---------------------------------------------------- */

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Solves linear equations with a symmetric positive definite matrix; false if it is singular. */
static bool solve(double m[MAX_RANKS][MAX_RANKS + 1], int n, double *x)
{
    for (int k = 0; k < n; k++) {
        if (!(m[k][k] >= 1e-9))
            return false;
        for (int i = 0; i < n; i++)
            for (int j = n; i != k && j >= k; j--)
                m[i][j] -= m[i][k] / m[k][k] * m[k][j];
    }
    for (int k = 0; k < n; k++)
        x[k] = m[k][n] / m[k][k];
    return true;
}

/* Finds b->times by least squares. @return whether they explain the whole result */
static bool fit(const Evidence *e, Brought *b)
{
    double m[MAX_RANKS][MAX_RANKS + 1], x[MAX_RANKS], norm[MAX_RANKS];
    int rank[MAX_RANKS], n = 0;
    for (int r = 0; r < b->ranks; r++) {
        b->times[r] = NAN;
        double square = dot(b->numbers[r], b->numbers[r], e->count);
        if (square > 0) {
            rank[n] = r;
            norm[n++] = sqrt(square);
        }
    }
    if (n == 0 || e->count < n + 2)
        return false;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            m[i][j] = dot(b->numbers[rank[i]], b->numbers[rank[j]], e->count) / norm[i] / norm[j];
        m[i][n] = dot(b->numbers[rank[i]], e->is, e->count) / norm[i];
    }
    if (!solve(m, n, x))
        return false;
    for (int i = 0; i < n; i++)
        b->times[rank[i]] = x[i] / norm[i];
    for (int64_t i = 0; i < e->count; i++) {
        double sum = 0;
        for (int k = 0; k < n; k++)
            sum += b->times[rank[k]] * b->numbers[rank[k]][i];
        if (!(fabs(sum - e->is[i]) <= 4 * e->tolerance))
            return false;
    }
    return true;
}

bool same_times(double a, double b)
{
    return fabs(a - b) < 1e-3 * fmax(1, fabs(b));
}

/* Has the result what it must have? Then its numbers are nearly right. */
static bool is_right_sum(const Brought *b)
{
    for (int r = 0; r < b->ranks; r++)
        if (!isnan(b->times[r]) && !same_times(b->times[r], b->member[r] ? b->weight[r] : 0))
            return false;
    return true;
}

bool find_brought(const Evidence *e, Brought *b)
{
    const Examination *own = &e->trial->result->lab->examine;
    const int on = e->trial->rank;
    Scenario run = scenario_alone(e->c, (Stream){0});
    *b = (Brought){.equal = true};
    while (own->summand && b->ranks < e->c->world) {
        const int r = b->ranks;
        const Summand its = own->summand(&run, e->want, r, on);
        if (!its.numbers)
            break;
        b->ranks++;
        b->member[r] = its.added;
        b->weight[r] = its.weight;
        b->equal = b->equal && b->weight[r] == b->weight[0];
        b->numbers[r] = malloc((size_t)e->count * sizeof(double) + 1);
        memcpy(b->numbers[r], reals(its.numbers) + global_index(e->got, 0),
               (size_t)e->count * sizeof(double));
    }
    scenario_close(&run);
    b->fits = b->ranks > 0 && fit(e, b) && !is_right_sum(b);
    return b->ranks > 0;
}

void forget_brought(Brought *b)
{
    for (int r = 0; r < b->ranks; r++)
        free(b->numbers[r]);
}

bool has_just(const Brought *b, uint64_t ranks)
{
    for (int r = 0; r < b->ranks; r++)
        if (!isnan(b->times[r]) && same_times(b->times[r], 0) != !(ranks >> r & 1) &&
            !(same_times(b->weight[r], 0) && same_times(b->times[r], 0)))
            return false;
    return b->fits;
}

bool has_none_of(const Brought *b, uint64_t ranks)
{
    for (int r = 0; r < b->ranks; r++)
        if (ranks >> r & 1 && !isnan(b->times[r]) && !same_times(b->times[r], 0))
            return false;
    return b->fits;
}

uint64_t members_of(const Brought *b)
{
    uint64_t ranks = 0;
    for (int r = 0; r < b->ranks; r++)
        ranks |= (uint64_t)b->member[r] << r;
    return ranks;
}

bool is_own_alone(const Evidence *e, const Brought *b)
{
    const uint64_t own = (uint64_t)1 << e->trial->rank;
    return members_of(b) != own && has_just(b, own) && !has_just(b, members_of(b));
}

double common_factor(const Brought *b, uint64_t ranks, bool by_weight)
{
    double common = NAN;
    for (int r = 0; r < b->ranks; r++) {
        if (!(ranks >> r & 1) || isnan(b->times[r]))
            continue;
        const double weight = by_weight ? b->weight[r] : 1, factor = b->times[r] / weight;
        if (weight == 0 && same_times(b->times[r], 0))
            continue;
        if (!isfinite(factor) || (!isnan(common) && !same_times(factor, common)))
            return NAN;
        common = factor;
    }
    return common;
}

/* ---- what they are called ------------------------------------------------------------------ */

void name_number(const Case *c, double n, char text[100])
{
    const double tp = c->tp, dp = replicas_of(c), pp = c->pp, stages = pp > 1 ? pp : 0;
    const struct {
        double value;
        const char *name;
    } names[] = {{dp, "dp"},
                 {tp, "tp"},
                 {stages, "pp"},
                 {stages > 0 ? c->world / tp : 0, "ranks / tp"},
                 {tp * stages, "tp * pp"},
                 {dp * stages, "dp * pp"},
                 {c->world, N_("ranks")},
                 {dp * dp, "dp * dp"},
                 {dp + 1, "dp + 1"},
                 {dp - 1, "dp - 1"}};
    enum { PLAIN = 7 }; /* of the others, only the first one is named */
    char all[80] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names && n != 1 && (i < PLAIN || !all[0]); i++)
        if (same_times(n, names[i].value))
            append(all, sizeof all, "%s = ", _(names[i].name));
    text[0] = '\0';
    if (all[0])
        snprintf(text, 100, _(" (here %s%g)"), all, n);
}

/* Writes ", divided by 2 (here tp = 2)", or "" for a factor of 1. */
static void tell_factor(const Case *c, double factor, char text[160])
{
    char name[100];
    const bool divides = fabs(factor) < 1;
    const double n = divides ? 1 / factor : factor;
    name_number(c, n, name);
    text[0] = '\0';
    if (!isnan(n) && !same_times(n, 1))
        snprintf(text, 160, divides ? _(", divided by %.4g%s") : _(", times %.4g%s"), n, name);
}

/* ---- what a wrong sum has ------------------------------------------------------------------ */

/* The reduction that the lab calls on this rank where these numbers come from, or NULL. */
static const Call *reduction_there(const Evidence *e)
{
    const Call *call = NULL;
    do
        call = next_call_there(e, call);
    while (call && (call->rule != REDUCTION || !line_of(call->address)[0]));
    return call;
}

/* Appends which reduction has not reached these numbers: one over other ranks, or one whose result
 * is lost. */
static void append_reduction(const Evidence *e, const Brought *b)
{
    char one[300];
    const Call *call = reduction_there(e);
    if (!call)
        return;
    call_text(e->trial->outcome->calls, call, NULL, one, sizeof one);
    append(
        e->text, e->size,
        call->members == members_of(b)
            ? _("\nrank %d adds them up in the %s, but the sum is not what is left in these numbers")
            : _("\nrank %d calls the %s"),
        e->trial->rank, one);
}

static bool own_alone(const Evidence *e, const Brought *b)
{
    const int own = e->trial->rank;
    char factor[160];
    if (!is_own_alone(e, b))
        return false;
    if (brought_by_one(e))
        return true;
    tell_factor(e->c, b->times[own], factor);
    if (!b->equal && same_times(b->times[own], b->weight[own]))
        snprintf(factor, sizeof factor, "%s", _(", times its share"));
    const Lab *lab = e->trial->result->lab;
    says(e,
         lab->over_replicas
             ? _("it is only this replica's own contribution%s: those of the other replicas "
                 "are missing")
         : lab->has_replicas
             ? _("it is only this rank's own contribution%s: those of the other ranks of its "
                 "group are missing")
             : _("it is only this rank's own contribution%s: those of the other ranks are "
                 "missing"),
         factor);
    append_reduction(e, b);
    return true;
}

bool is_own_though_summed(const Evidence *e, Label call)
{
    Brought b;
    if (!have_sent_enough(e->trial, call) || !find_brought(e, &b))
        return false;
    const bool own = is_own_alone(e, &b);
    forget_brought(&b);
    return own;
}

/* A set of ranks over which a lab may sum. */
typedef struct RankSet {
    uint64_t ranks;
    const char *name;
} RankSet;

/* Says that it is the sum over this set; by_weight: each rank's numbers times its share. */
static bool says_set(const Evidence *e, const Brought *b, const RankSet *set, double times,
                     bool by_weight)
{
    const uint64_t right = members_of(b);
    const double dp = replicas_of(e->c);
    char factor[160], is[300];
    double all = by_weight ? 0 : times * __builtin_popcountll(set->ranks);
    for (int r = 0; by_weight && r < b->ranks; r++)
        all += set->ranks >> r & 1 ? b->times[r] : 0;
    tell_factor(e->c, times, factor);
    if (!e->trial->result->lab->over_replicas)
        return says(e, _("it is the sum over %s%s: it must be the sum over this rank's group"),
                    _(set->name), factor);
    if (set->ranks == right)
        return says(e, _("it is the sum over mesh->dp%s: divide the sum by mesh->dp_degree%s"),
                    factor,
                    same_times(1 / times, dp * dp) && dp * dp != e->c->world ? _(", once") : "");
    if (same_times(all, 1))
        snprintf(is, sizeof is,
                 by_weight ? _("it is the weighted mean over %s") : _("it is the mean over %s"),
                 _(set->name));
    else
        snprintf(is, sizeof is,
                 by_weight ? _("it is the weighted sum over %s%s") : _("it is the sum over %s%s"),
                 _(set->name), factor);
    return says(
        e, "%s%s: %s", is,
        set->ranks & ~right ? _(", and some of its ranks hold other pieces of the weights") : "",
        b->equal ? _("take the mean over mesh->dp") : _("take the weighted mean over mesh->dp"));
}

/* Is it a sum over another group than the rank's, or with another divisor? */
static bool sum_of_other_set(const Evidence *e, const Brought *b)
{
    const Case *c = e->c;
    const int rank = e->trial->rank;
    const bool over_replicas = e->trial->result->lab->over_replicas;
    const uint64_t right = members_of(b), all = ((uint64_t)1 << b->ranks) - 1;
    const RankSet sets[] = {
        {over_replicas ? right : 0, "mesh->dp"},
        {ranks_of(group_members(c, TP, rank)), "mesh->tp"},
        {over_replicas ? ranks_of(group_members(c, DP, rank)) : 0, "mesh->dp"},
        {over_replicas ? ranks_of(group_members(c, PP, rank)) : 0, "mesh->pp"},
        {all, N_("all ranks")},
    };
    size_t i = 0;
    while (i < sizeof sets / sizeof *sets && !(sets[i].ranks && has_just(b, sets[i].ranks)))
        i++;
    if (i == sizeof sets / sizeof *sets || (sets[i].ranks == right && !(over_replicas && b->equal)))
        return false;
    const double plain = common_factor(b, sets[i].ranks, false),
                 times = isnan(plain) ? common_factor(b, sets[i].ranks, true) : plain;
    return times > 0 && says_set(e, b, &sets[i], times, isnan(plain));
}

/* Does this rank send n - 1 messages in this pass, all to rank `to`, and call no collective? */
static bool sends_around(const Evidence *e, int n, int to)
{
    const RankCalls *mine = &e->trial->outcome->calls->rank[e->trial->rank];
    Label pass = e->want->label;
    int sent = 0;
    pass.what = pass.what == OUTPUT_OF ? FORWARD_PASS_OF : BACKWARD_PASS_OF;
    for (int64_t i = 0; i < mine->count; i++) {
        const Call *call = &mine->call[i];
        if (!label_equal(&call->where, &pass) || call->charged == 0)
            continue;
        if (call->rule != MESSAGE || call->to != to)
            return false;
        sent++;
    }
    return sent == n - 1;
}

/* Does each rank of a ring pass on its running sum, in this direction? After n - 1 rounds, a rank's
 * sum contains the numbers of the rank k places before it C(n - 1, k) times. */
static bool passes_on_sums(const Evidence *e, const double times[MAX_RANKS], int direction)
{
    const Members group = tp_group(e->c, e->trial->rank);
    const int n = group.count, place = place_in(group, e->trial->rank);
    bool fits = n > 2 && e->trial->outcome->calls &&
                sends_around(e, n, group.first + (place + n + direction) % n * group.stride);
    double binomial = 1;
    for (int k = 0; k < n && fits; k++) {
        const double is = times[group.first + (place + n - direction * k) % n * group.stride];
        fits = isnan(is) || same_times(is, binomial);
        binomial *= (double)(n - 1 - k) / (k + 1);
    }
    return fits;
}

/* Does the contribution of the rank k places before this one count 2^k times? */
static bool is_doubled_on_the_way(const Evidence *e, const double times[MAX_RANKS], int direction)
{
    const Members group = tp_group(e->c, e->trial->rank);
    const int n = group.count, place = place_in(group, e->trial->rank);
    bool fits = n > 2;
    for (int k = 0; k < n && fits; k++) {
        const double is = times[group.first + (place + n - direction * k + n) % n * group.stride];
        fits = isnan(is) || same_times(is, (double)(1 << k));
    }
    return fits;
}

/* Is only this rank's own contribution divided, and those of the others are not? */
static bool own_is_divided(const Evidence *e, const Brought *b)
{
    const int own = e->trial->rank;
    const double others = common_factor(b, members_of(b) & ~((uint64_t)1 << own), false);
    char factor[160];
    tell_factor(e->c, b->times[own], factor);
    return has_just(b, members_of(b)) && same_times(others, 1) && b->times[own] < 0.999 &&
           says(e,
                _("the sum has this rank's own contribution%s, and those of the others undivided: "
                  "divide all of them before the sum, or the result after it"),
                factor);
}

/* Are some members missing from the result or counted several times, and all others counted
 * once? */
static bool wrong_times(const Evidence *e, const Brought *b)
{
    int right = 0, odd = -1, count = 0;
    char all[120] = "", others[260] = "";
    for (int r = 0; r < b->ranks; r++) {
        const double times = b->times[r] / b->weight[r];
        append(all, sizeof all, isnan(times) ? " ?" : " %.0f", round(times) + 0.0);
        if (isnan(times) || same_times(times, b->member[r])) {
            right += b->member[r] && !isnan(times);
            continue;
        }
        if (!same_times(times, round(times)))
            return false;
        odd = odd < 0 ? r : odd;
        count++;
    }
    const double times = odd < 0 ? 0 : round(b->times[odd] / b->weight[odd]);
    if (odd < 0 || (right == 0 && (b->ranks > 1 || times != 2)))
        return false;
    if (count > 1)
        snprintf(others, sizeof others,
                 _(" (the contributions of ranks 0 to %d count%s times in it)"), b->ranks - 1, all);
    if (!b->member[odd])
        return says(e, _("it contains the contribution of rank %d, which is in another group%s"),
                    odd, others);
    if (times == 0 && odd == e->trial->rank)
        return says(e, _("the contribution of rank %d, this rank itself, is missing%s"), odd,
                    others);
    if (times == 0)
        return says(
            e,
            _("the contribution of rank %d is missing%s: it does not reach this rank, or is not added"),
            odd, others);
    if (e->want->check != GRADIENT &&
        (passes_on_sums(e, b->times, 1) || passes_on_sums(e, b->times, -1)))
        snprintf(others, sizeof others, "%s",
                 _(": a rank passes on its running sum, and so sends again what it has sent "
                   "before. Pass on what arrived in the previous round"));
    if (is_doubled_on_the_way(e, b->times, 1) || is_doubled_on_the_way(e, b->times, -1))
        append(others, sizeof others, "%s", _(": what arrives is doubled in each round"));
    if (times == 2 && odd == e->trial->rank)
        return says(e, _("it contains the contribution of rank %d, this rank itself, twice%s"), odd,
                    others);
    if (times == 2)
        return says(e, _("it contains the contribution of rank %d twice%s"), odd, others);
    return says(e, _("it contains %g times the contribution of rank %d%s"), times, odd, others);
}

bool made_of_contributions(const Evidence *e)
{
    Brought b;
    if (!find_brought(e, &b))
        return false;
    const bool found = (e->zeros < e->count && combined_otherwise(e, &b)) ||
                       (b.fits && (own_alone(e, &b) || sum_of_other_set(e, &b) ||
                                   own_is_divided(e, &b) || (b.equal && wrong_times(e, &b))));
    forget_brought(&b);
    return found;
}
