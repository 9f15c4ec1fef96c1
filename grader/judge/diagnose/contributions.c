/* Determines how the result is composed of the ranks' contributions. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/diagnose/contributions.h"
#include "grader/labs/groups.h"

static bool find_brought(const Evidence *e, Brought *b)
{
    const Case *c = e->c;
    char key[KEY_SIZE];
    Mesh mesh = {.tp_degree = 1, .dp_degree = 1};
    const Examination *own = &e->trial->result->lab->examine;
    if (alike_on_ranks(c) || !own->inputs || !own->inputs(e->want, key))
        return false;
    bool averaged = e->want->check == GRADIENT;
    Scenario run = {.c = *c, .mesh = &mesh, .pool = pool_new(0, false)};
    run.tape = tape_new(run.pool, &mesh);
    tape_reset(run.tape, (TapeBatch){.seed = c->key});
    *b = (Brought){.ranks = c->world, .share = averaged ? 1.0 / replicas_of(c) : 1};
    for (int r = 0; r < c->world; r++) {
        b->member[r] = averaged ? r % c->tp == e->trial->rank % c->tp
                                : tp_group(c, r).first == tp_group(c, e->trial->rank).first;
        b->numbers[r] = malloc((size_t)e->count * sizeof(double) + 1);
        memcpy(b->numbers[r],
               reals(random_input(&run, key, r, e->want->shape, false)) + global_index(e->got, 0),
               (size_t)e->count * sizeof(double));
    }
    tape_free(run.tape);
    pool_free(run.pool);
    return true;
}

/* ---- which contributions the sum has ------------------------------------------------------- */

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

bool times_of_ranks(const Evidence *e, const Brought *b, double times[MAX_RANKS])
{
    double m[MAX_RANKS][MAX_RANKS + 1], x[MAX_RANKS], norm[MAX_RANKS];
    int rank[MAX_RANKS], n = 0;
    for (int r = 0; r < b->ranks; r++) {
        times[r] = NAN;
        double square = dot(b->numbers[r], b->numbers[r], e->count);
        if (square > 0) {
            rank[n] = r;
            norm[n++] = sqrt(square);
        }
    }
    if (n == 0 || e->count < 2 * n)
        return false;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            m[i][j] = dot(b->numbers[rank[i]], b->numbers[rank[j]], e->count) / norm[i] / norm[j];
        m[i][n] = dot(b->numbers[rank[i]], e->is, e->count) / norm[i];
    }
    if (!solve(m, n, x))
        return false;
    for (int i = 0; i < n; i++)
        times[rank[i]] = x[i] / norm[i] / b->share;
    for (int64_t i = 0; i < e->count; i++) {
        double sum = 0;
        for (int k = 0; k < n; k++)
            sum += times[rank[k]] * b->share * b->numbers[rank[k]][i];
        if (!(fabs(sum - e->is[i]) <= 4 * e->tolerance))
            return false;
    }
    return true;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-3;
}

/* Does the result contain every rank of the world equally often, including those of other
 * groups? */
static bool sum_over_world(const Evidence *e, const Brought *b, const double times[MAX_RANKS])
{
    double each = NAN;
    bool others = false;
    for (int r = 0; r < b->ranks; r++) {
        each = isnan(each) ? times[r] : each;
        if (!isnan(times[r]) && (is_near(times[r], 0) || !is_near(times[r], each)))
            return false;
        others = others || (!b->member[r] && !isnan(times[r]));
    }
    if (!others)
        return false;
    return says(e, b->share != 1
                       ? _("all ranks of the world contribute to it, and some of them hold "
                           "different pieces of the weights: average over the group mesh->dp")
                   : is_near(each, (double)e->c->tp / e->c->world)
                       ? _("it is the sum over all ranks, divided by the number of replicas: other "
                           "replicas must not contribute to it")
                       : _("it contains contributions of another replica: it was summed over the "
                           "world"));
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
        fits = isnan(is) || is_near(is, binomial);
        binomial *= (double)(n - 1 - k) / (k + 1);
    }
    return fits;
}

/* Are some members missing from the result or counted several times, and all others counted
 * once? */
static bool wrong_times(const Evidence *e, const Brought *b, const double times[MAX_RANKS])
{
    int right = 0, odd = -1, count = 0;
    for (int r = 0; r < b->ranks; r++) {
        double should = b->member[r];
        if (isnan(times[r]))
            continue;
        if (is_near(times[r], should)) {
            right += b->member[r];
            continue;
        }
        if (!is_near(times[r], round(times[r])))
            return false;
        odd = odd < 0 ? r : odd;
        count++;
    }
    if (odd < 0 || right == 0)
        return false;
    const char *others = count > 1 ? _(", and others are not counted exactly once either") : "";
    if (!b->member[odd])
        return says(e, _("it contains the contribution of rank %d, which is in another group"),
                    odd);
    if (is_near(times[odd], 0) && odd == e->trial->rank)
        return says(e, _("the contribution of rank %d, this rank itself, is missing%s"), odd,
                    others);
    if (is_near(times[odd], 0))
        return says(
            e,
            _("the contribution of rank %d is missing%s: it does not reach this rank, or is not added"),
            odd, others);
    if (e->want->check != GRADIENT && (passes_on_sums(e, times, 1) || passes_on_sums(e, times, -1)))
        others = _(": a rank passes on its running sum, and so sends again what it has sent "
                   "before. Pass on what arrived in the previous round");
    if (is_near(times[odd], 2))
        return says(e, _("it contains the contribution of rank %d twice%s"), odd, others);
    return says(e, _("it contains the contribution of rank %d %g times%s"), odd, round(times[odd]),
                others);
}

bool made_of_contributions(const Evidence *e)
{
    Brought b;
    double times[MAX_RANKS];
    if (!find_brought(e, &b))
        return false;
    bool found =
        combined_otherwise(e, &b) || (times_of_ranks(e, &b, times) &&
                                      (sum_over_world(e, &b, times) || wrong_times(e, &b, times)));
    for (int r = 0; r < b.ranks; r++)
        free(b.numbers[r]);
    return found;
}
