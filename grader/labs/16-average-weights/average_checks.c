/* Lab 16: explains a wrong mean of weights. */
#include <math.h>

#include "grader/judge/diagnose/contributions.h"
#include "grader/labs/averages.h"

/* Has this rank taken an average after a step? */
static bool took_average(const Trial *t, int which, int step)
{
    const Entry *got = entry_of_rank(t, t->rank, TRAFFIC, averages_label(CALL_OF, which, step));
    return got && got->count > COLLECTIVES && numbers_of(got)[COLLECTIVES] > 0;
}

/* 1 if an average is due after a step and this rank took none, -1 for the opposite, else 0. */
static int calls_left_out(const Trial *t, int which, int step)
{
    const Label call = averages_label(CALL_OF, which, step);
    const Entry *want = find_entry(t->expected.all, TRAFFIC, call);
    if (!want || !entry_of_rank(t, t->rank, TRAFFIC, call) || replicas_of(t->c) == 1)
        return 0; /* a replica alone sends nothing */
    return (numbers_of(want)[COLLECTIVES] > 0) - took_average(t, which, step);
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

/* Does this rank take every average of the case `early` steps before it is due? */
static bool takes_all_early(const Trial *t, int early)
{
    for (int which = 0; which < AVERAGES_RUNS; which++)
        for (int step = averages_first_step(which); step <= AVERAGES_STEPS; step++)
            if (took_average(t, which, step) !=
                ((step + early) % t->c->every == 0 || averages_is_last(which, step)))
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
    if (takes_all_early(t, 1) || takes_all_early(t, -1))
        snprintf(
            text, 200, "%s",
            takes_all_early(t, 1)
                ? _(". Every average that `every` makes due comes one step early: `step` counts "
                    "the steps done, including the one just taken")
                : _(". Every average that `every` makes due comes one step late: `step` counts the "
                    "steps done, including the one just taken"));
    else if (step % t->c->every != 0)
        return text;
    else if (before > 0 && before % t->c->every != 0)
        snprintf(
            text, 200,
            _(". Each multiple of `every` counts, also after step %d, where `last` was set and "
              "an average was taken"),
            before);
    else if (before == 0 && which == 0 && counts_from_first_step(t))
        snprintf(text, 200, "%s",
                 _(". Run 1 begins with step 4, like a resumed run, where what the lab has "
                   "counted itself begins at 0: `step` says how many steps are done"));
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
            while (i < AVERAGES_LARGE &&
                   (averages_large[i].last || narrowed(averages_large[i].step, step) %
                                                      narrowed(averages_large[i].every, every) ==
                                                  0) == (answer[i] != 0))
                i++;
            if (i == AVERAGES_LARGE)
                return true;
        }
    return false;
}

/* Says which answer for a large step is wrong, if one is. */
static bool large_step_is_wrong(const Evidence *e)
{
    const LargeStep asked = averages_large[e->first_wrong];
    if (asked.last)
        return says(e,
                    _("average_is_due(%lld, %lld, true) returned false: an average is due whenever "
                      "`last` is set"),
                    (long long)asked.step, (long long)asked.every);
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

/* Was an average taken after a step where none is due, or left out where one is due? */
static bool averaged_at_wrong_step(const Evidence *e)
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
        snprintf(
            why, sizeof why,
            step % every == 0
                ? averages_is_last(weights.index, step)
                      ? _("no average was taken after step %d, but one is due: %d is a multiple "
                          "of every=%d, and `last` is set, too")
                      : _("no average was taken after step %d, but one is due: %d is a multiple "
                          "of every=%d")
                : _("no average was taken after step %d, but one is due: `last` is set, so "
                    "the weights are evaluated or saved next"),
            step, step, every);
    return says(e, "%s%s", why, where_count_begins(e->trial, weights.index, step, begins));
}

/* The rows on which a replica has trained since the average before this one. */
static double rows_of_replica(const Evidence *e, int replica)
{
    const Scenario run = {.c = *e->c};
    const int which = e->want->label.index;
    double rows = 0;
    int step = e->want->label.step + 1;
    do {
        rows += averages_rows(&run, replica, which, step);
        step--;
    } while (step >= averages_first_step(which) && step % e->c->every != 0 &&
             !averages_is_last(which, step));
    return rows;
}

/* Those of all replicas. */
static double rows_of_average(const Evidence *e)
{
    double rows = 0;
    for (int replica = 0; replica < replicas_of(e->c); replica++)
        rows += rows_of_replica(e, replica);
    return rows;
}

void averages_ending(const Trial *t, char *text, size_t size)
{
    const Calls *calls = t->outcome->calls;
    char words[LABEL_SIZE];
    for (int waits = 0; calls && waits < calls->ranks; waits++) {
        const Call *in = call_of_rank(calls, waits);
        if (!in || in->where.of != THE_WEIGHTS)
            continue;
        const Evidence e = {.c = t->c, .want = &(Entry){.label = in->where}};
        const Label call = averages_label(CALL_OF, in->where.index, in->where.step + 1);
        for (int rank = 0; rank < calls->ranks; rank++) {
            const Entry *sent = entry_of_rank(t, rank, TRAFFIC, call);
            if (!(in->members >> rank & 1) || !sent || numbers_of(sent)[COLLECTIVES] > 0 ||
                rows_of_replica(&e, replica_of_rank(t->c, rank)) > 0)
                continue;
            append(text, size,
                   _("rank %d takes no part in the sums of %s: its replica has no rows. Such a "
                     "replica has the share 0, but takes part like all others\n"),
                   rank, label_text(&in->where, words));
            return;
        }
    }
}

/* All replicas count the same. */
static bool says_equal_shares(const Evidence *e, const Brought *b, double each)
{
    char name[100];
    const double n = 1 / each, rows = rows_of_average(e);
    if (same_times(each, 1))
        return says(e, _("the weights grow with the number of replicas: this is their sum, not "
                         "their mean"));
    if (same_times(n, replicas_of(e->c)))
        return says(e, _("all replicas count the same, 1/dp, but they have trained on different "
                         "numbers of rows: scale each replica's weights by its share of all rows"));
    if (same_times(each, b->weight[e->trial->rank]))
        return says(e, _("the sum of the weights is multiplied by this replica's share of the "
                         "rows: each replica multiplies its own weights, before the sum"));
    name_number(e->c, n, name);
    if (same_times(n, rows))
        snprintf(name, sizeof name, _(" (here %s%g)"), _("rows of all replicas = "), rows);
    return says(e,
                _("the sum of the replicas' weights is divided by %.4g%s: scale each replica's "
                  "weights by its share of all rows instead"),
                n, name);
}

/* Are the weights a mixture of this replica's own and the mean? Then each replica has others. */
static bool is_mixed(const Evidence *e, const Brought *b)
{
    const int own = e->trial->rank;
    double mean = NAN;
    for (int rank = 0; rank < b->ranks; rank++)
        if (b->member[rank] && rank != own && b->weight[rank] > 0) {
            const Entry *other = entry_of_rank(e->trial, rank, VALUES, e->want->label);
            if (!other || other->count != e->count ||
                close_to(numbers_of(other), e->is, 1, e->count, e->tolerance))
                return false;
            mean = b->times[rank] / b->weight[rank];
        }
    const double more = b->times[own] - mean * b->weight[own];
    for (int rank = 0; rank < b->ranks; rank++)
        if (b->member[rank] &&
            fabs(b->times[rank] - mean * b->weight[rank] - (rank == own ? more : 0)) > 1e-3)
            return false;
    return !isnan(mean) && more > 1e-3 &&
           says(e,
                _("the weights are %.4g times this replica's own plus %.4g times the mean: after "
                  "an average, all replicas have the mean"),
                more, mean);
}

/* Reports the share that differs most from its replica's share of the rows. */
static bool says_worst_share(const Evidence *e, const Brought *b)
{
    const Members dp = group_members(e->c, DP, e->trial->rank);
    double most = 1e-3;
    int worst = -1;
    bool whole = true; /* is every share 0 or 1? */
    for (int k = 0; k < dp.count; k++) {
        const int rank = dp.first + k * dp.stride;
        const double off = fabs(b->times[rank] - b->weight[rank]);
        whole = whole && (same_times(b->times[rank], 0) || same_times(b->times[rank], 1));
        worst = off > most ? rank : worst;
        most = fmax(off, most);
    }
    if (worst < 0)
        return false;
    const int replica = replica_of_rank(e->c, worst);
    if (b->weight[worst] == 0)
        return says(e,
                    _("replica %d has no rows, but a share of %.4g in the mean: its share is 0, "
                      "and it gets the mean like all others"),
                    replica, b->times[worst]);
    const bool none = same_times(b->times[worst], 0);
    return says(e,
                _("the share of replica %d in the mean is %.4g, but it has trained on %g of %g "
                  "rows, a share of %.4g%s"),
                replica, none ? 0 : b->times[worst], rows_of_replica(e, replica),
                rows_of_average(e), b->weight[worst],
                none && whole ? _(": a quotient is 0 when both are integers") : "");
}

/* Are the times the inverses of the rows? */
static bool divided_by_rows(const Evidence *e, const Brought *b)
{
    bool all = true;
    for (int rank = 0; rank < b->ranks; rank++) {
        const double rows = rows_of_replica(e, replica_of_rank(e->c, rank));
        all = all && (!b->member[rank] || same_times(b->times[rank], 1 / rows));
    }
    return all && says(e, _("each replica's weights are divided by the number of its rows: "
                            "multiply them by that number, and divide by the rows of all "
                            "replicas"));
}

/* How many sums of all weights over the replicas this rank has made in the average; their lines. */
static int sums_of_weights(const Evidence *e, char *lines, size_t size)
{
    const Label l = e->want->label, place = averages_label(CALL_OF, l.index, l.step + 1);
    const Calls *calls = e->trial->outcome->calls;
    const RankCalls *mine = calls ? &calls->rank[e->trial->rank] : NULL;
    int count = 0;
    for (int64_t i = 0; mine && i < mine->count; i++) {
        const Call *call = &mine->call[i];
        if (!label_equal(&call->where, &place) || call->rule != REDUCTION ||
            call->sent[0].count < e->count)
            continue;
        append(lines, size, "%s%s", count++ ? ", " : "", line_of(call->address));
    }
    return count;
}

/* All shares are multiplied by the same number. */
static bool says_sum_of_shares(const Evidence *e, double sum)
{
    char lines[120] = "";
    if (sum > 1 && sums_of_weights(e, lines, sizeof lines) > 1)
        return says(e,
                    _("it is %.4g times the mean: the weights are summed over the replicas "
                      "several times (%s)"),
                    sum, lines);
    char name[100], inverse[140] = "";
    name_number(e->c, 1 / sum, name);
    if (name[0])
        snprintf(inverse, sizeof inverse, " = 1/%.4g%s", 1 / sum, name);
    return says(e,
                _("it is %.4g%s times the mean: each replica's share is its rows since its last "
                  "average, divided by their sum over mesh->dp, and counts once"),
                sum, inverse);
}

/* Finds how often each replica's weights count in the first wrong mean of a run. */
static bool shares_are_wrong(const Evidence *e)
{
    const uint64_t dp = ranks_of(group_members(e->c, DP, e->trial->rank));
    Brought b;
    bool found = false;
    if (!find_brought(e, &b))
        return false;
    if (has_just(&b, dp)) {
        const double each = common_factor(&b, dp, false), sum = common_factor(&b, dp, true);
        found = !isnan(each) ? says_equal_shares(e, &b, each)
                : !isnan(sum)
                    ? says_sum_of_shares(e, sum)
                    : is_mixed(e, &b) || divided_by_rows(e, &b) || says_worst_share(e, &b);
    } else if (!is_own_alone(e, &b) && has_none_of(&b, ~dp)) {
        found = says_worst_share(e, &b);
    }
    forget_brought(&b);
    return found;
}

/* Has the rank its own weights, times its share or not, although the sums were exchanged? */
static bool sum_is_elsewhere(const Evidence *e)
{
    const Label l = e->want->label;
    return l.of == THE_WEIGHTS &&
           is_own_though_summed(e, averages_label(CALL_OF, l.index, l.step + 1)) &&
           !brought_by_one(e) &&
           says(e, _("the ranks have exchanged the sums, but these are only this replica's own "
                     "weights: the sum must be in `weights` itself"));
}

Finder *const averages_reasons[] = {averaged_at_wrong_step, sum_is_elsewhere, NULL};
Finder *const averages_more_reasons[] = {shares_are_wrong, NULL};
