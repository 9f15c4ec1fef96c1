/* Lab 16: explains a wrong mean of weights. */
#include <math.h>
#include <stdlib.h>

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
    if (!want || !entry_of_rank(t, t->rank, TRAFFIC, call))
        return 0;
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
        snprintf(text, 200,
                 _(". The previous average followed step %d, where `last` was set: count from 0, "
                   "not from there"),
                 before);
    else if (before == 0 && which == 0 && counts_from_first_step(t))
        snprintf(text, 200, "%s",
                 _(". Run 1 begins with step 4, like a resumed run, where a counter of your "
                   "own begins at 0: `step` says how many steps are done"));
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

/* Says which answer for a large step is wrong, if one is. */
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
        snprintf(why, sizeof why,
                 step % every == 0
                     ? _("no average was taken after step %d, but one is due: %d is a multiple of "
                         "every=%d")
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

/* Writes what has the value n in this case: " (here, tp is 2)", or "". */
static void write_names(const Evidence *e, double n, char text[200])
{
    const Case *c = e->c;
    const double tp = c->tp, pp = c->pp, dp = replicas_of(c);
    const struct {
        double value;
        const char *name;
    } names[] = {{tp, "tp"},
                 {pp > 1 ? pp : 0, "pp"},
                 {pp > 1 ? tp * pp : 0, "tp * pp"},
                 {pp > 1 ? dp * pp : 0, "dp * pp"},
                 {dp + 1, "dp + 1"},
                 {c->world, N_("the total number of ranks")},
                 {rows_of_average(e), N_("the number of rows of all replicas")}};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names && !text[0]; i++)
        if (fabs(n - names[i].value) < 1e-3)
            snprintf(text, 200, _(" (here, %s is %g)"), _(names[i].name), n);
}

/* Is the sum of the replicas' weights divided by one number? */
static bool sum_is_divided(const Evidence *e)
{
    const Entry *sum =
        e->want->label.of == THE_WEIGHTS
            ? find_entry(expected_with(e->trial, WEIGHTS_SUMMED)->all, VALUES, e->want->label)
            : NULL;
    char names[200];
    int64_t at = 0;
    if (!sum || sum->count != e->count || e->count == 0)
        return false;
    const double *all = numbers_of(sum);
    for (int64_t i = 0; i < e->count; i++)
        at = fabs(all[i]) > fabs(all[at]) ? i : at;
    const double factor = e->is[at] / all[at];
    if (!(fabs(factor) > 1e-6) || !close_to(e->is, all, factor, e->count, 4 * e->tolerance))
        return false;
    write_names(e, 1 / factor, names);
    return says(e,
                _("the sum of the replicas' weights is divided by %.4g%s: scale each replica's "
                  "weights by its share of all rows instead"),
                1 / factor, names);
}

/* Are all weights the same multiple of the right ones? */
static bool shares_do_not_add_up(const Evidence *e)
{
    int64_t at = 0;
    if (e->want->label.of != THE_WEIGHTS || e->count < 2)
        return false;
    for (int64_t i = 0; i < e->count; i++)
        at = fabs(e->right[i]) > fabs(e->right[at]) ? i : at;
    const double sum = e->is[at] / e->right[at];
    const bool is_one = fabs(sum - 1) < 1e-3; /* then it would be printed as 1 */
    return !is_one && fabs(sum) > 1e-6 &&
           close_to(e->is, e->right, sum, e->count, 4 * e->tolerance) &&
           says(e,
                _("the shares of the replicas add up to %.4g, not to 1: each must be the number "
                  "of its replica's rows since the last average, divided by that of all replicas"),
                sum);
}

/* Finds the share of each replica in the first mean of a run, and reports the one that differs most
 * from its share of the rows. */
static bool rows_do_not_give_shares(const Evidence *e)
{
    const Members dp = group_members(e->c, DP, e->trial->rank);
    Brought own = {.ranks = e->c->world, .share = 1};
    double shares[MAX_RANKS], most = 1e-3;
    int worst = -1;
    if (e->want->label.of != THE_WEIGHTS || e->zeros == e->count)
        return false;
    for (int rank = 0; rank < own.ranks; rank++) {
        Expected alone = expect(e->c, rank, WEIGHTS_OWN, 0);
        own.numbers[rank] = malloc((size_t)e->count * sizeof(double) + 1);
        memcpy(own.numbers[rank], numbers_of(find_entry(alone.all, VALUES, e->want->label)),
               (size_t)e->count * sizeof(double));
        expected_free(&alone);
    }
    const bool found = times_of_ranks(e, &own, shares);
    for (int k = 0; found && k < dp.count; k++) {
        const double off =
            fabs(shares[dp.first + k * dp.stride] - rows_of_replica(e, k) / rows_of_average(e));
        worst = off > most ? k : worst;
        most = fmax(off, most);
    }
    for (int rank = 0; rank < own.ranks; rank++)
        free(own.numbers[rank]);
    return worst >= 0 &&
           says(e,
                _("the share of replica %d in the mean is %.4g, but it has trained on %g of %g "
                  "rows, a share of %.4g"),
                worst, shares[dp.first + worst * dp.stride], rows_of_replica(e, worst),
                rows_of_average(e), rows_of_replica(e, worst) / rows_of_average(e));
}

Finder *const averages_reasons[] = {averaged_at_wrong_step, NULL};
Finder *const averages_more_reasons[] = {sum_is_divided, shares_do_not_add_up,
                                         rows_do_not_give_shares, NULL};
