/* Finds what the wrong numbers have in common and the right ones do not. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"

bool is_right(const Evidence *e, int64_t i)
{
    return error_in(e->want, e->is[i], e->right[i]) <= e->tolerance;
}

void look_over(Evidence *e)
{
    e->first_wrong = e->count;
    e->wrong = e->zeros = e->lost = 0;
    e->error = e->most_is = e->most_right = 0;
    for (int64_t i = e->count - 1; i >= 0; i--) {
        e->zeros += e->is[i] == 0;
        e->error = fmax(e->error, fabs(e->is[i] - e->right[i]));
        e->most_is = fmax(e->most_is, fabs(e->is[i]));
        if (isfinite(e->right[i]))
            e->most_right = fmax(e->most_right, fabs(e->right[i]));
        if (is_right(e, i))
            continue;
        e->first_wrong = i;
        e->wrong++;
        e->lost += e->is[i] == 0;
    }
}

/* The size of one row or sample if there are several along the first dimension; otherwise 0. */
static int64_t numbers_of_one(const Evidence *e)
{
    const Shape *shape = &e->want->shape;
    int64_t one = shape->size[0] > 1 ? shape_count(*shape) / shape->size[0] : 0;
    if (e->got->placement_kind == SHARD && e->got->placement_dim > 0)
        one = one / shape->size[e->got->placement_dim] * (e->got->end - e->got->begin);
    return shape->rank > 1 && one < e->count ? one : 0;
}

/* Does a rank's piece of a row end here? False if the first 1/tp of all numbers ends here, too:
 * that is then the likelier reason. */
static bool is_end_of_piece(const Evidence *e, int64_t at)
{
    const int64_t row = shape_last(e->want->shape), tp = e->c->tp;
    return at % (row % tp == 0 ? row / tp : row) == 0 && at * tp != e->count;
}

/* The first call of this pass, on this rank, that sends this many numbers; or NULL. */
static const Call *call_of_count(const Evidence *e, int64_t count)
{
    const Calls *calls = e->trial->outcome->calls;
    const RankCalls *mine = calls ? &calls->rank[e->trial->rank] : NULL;
    for (int64_t i = 0; mine && i < mine->count; i++) {
        Label of = mine->call[i].where;
        of.what = e->want->label.what;
        const int64_t ranks = __builtin_popcountll(mine->call[i].members);
        /* if every rank sends as much, it is the share of a rank */
        if (mine->call[i].number && mine->call[i].sent[0].count == count &&
            count * ranks != e->count && label_equal(&of, &e->want->label))
            return &mine->call[i];
    }
    return NULL;
}

bool first_ones_right(const Evidence *e)
{
    enum { ENOUGH = 8 };
    const int64_t first = e->first_wrong, one = numbers_of_one(e);
    int64_t told = 0;
    for (int64_t i = 0; i < first; i++)
        told += e->right[i] != 0;
    if (one > 0 && (first % one == 0 || (alike_on_ranks(e->c) && is_end_of_piece(e, first))))
        return false; /* whole samples, rows or pieces of a row may be right for another reason */
    if (told < ENOUGH || e->wrong < ENOUGH || e->wrong < (e->count - first) / 2)
        return false;
    const Call *call = call_of_count(e, first);
    char which[300];
    if (!call)
        return says(
            e,
            _("the first %lld of %lld numbers are right, but the rest is wrong: a buffer, a "
              "loop or the count of a call ends there"),
            (long long)first, (long long)e->count);
    call_text(e->trial->outcome->calls, call, NULL, which, sizeof which);
    return says(
        e,
        _("the first %lld of %lld numbers are right, but the rest is wrong: %lld is the count of "
          "the %s"),
        (long long)first, (long long)e->count, (long long)first, which);
}

/* Is one number wrong, or the last few: fewer than a row or, without rows, than an eighth of all? */
bool few_wrong(const Evidence *e)
{
    enum { MANY = 16 };
    const int64_t last = e->count - e->first_wrong, one = numbers_of_one(e);
    if (e->wrong == 1 && last > 1 && e->count >= MANY)
        return says(e, _("only element %s of %lld numbers is wrong"),
                    address_text(e->got, e->first_wrong, (char[96]){0}), (long long)e->count);
    if (e->wrong == 0 || is_right(e, e->count - 1) || 2 * e->wrong < last ||
        last >= (one > 0 ? one : e->count / 8))
        return false;
    if (last == 1)
        return says(e,
                    _("only the last of %lld numbers is wrong: a loop, an exchange or a buffer "
                      "ends before it"),
                    (long long)e->count);
    return says(e,
                _("only the last %lld of %lld numbers are wrong: a loop, an exchange or a buffer "
                  "ends before them"),
                (long long)last, (long long)e->count);
}

/* Are numbers cut off at a limit: is every number that should exceed it equal to it, and all others
 * right? */
static bool cut_off(const Evidence *e)
{
    const double limit = e->most_is;
    for (int64_t i = e->first_wrong; i < e->count; i++)
        if (!is_right(e, i) &&
            !(fabs(e->is[i]) == limit && e->is[i] * e->right[i] > 0 && fabs(e->right[i]) > limit))
            return false;
    return e->wrong >= 2 &&
           says(e, _("numbers beyond %g are clipped to %g or its negative"), limit, limit);
}

/* Are the wrong numbers `factor` times the expected ones, and the others right? A single wrong
 * number would match some factor by chance. */
static bool some_times(const Evidence *e, double factor)
{
    if (factor == 1 || e->wrong < 2 || e->wrong == e->count)
        return false;
    for (int64_t i = e->first_wrong; i < e->count; i++)
        if (!is_right(e, i) &&
            !(fabs(e->is[i] - factor * e->right[i]) <= e->tolerance * fmax(1, factor)))
            return false;
    int replicas = replicas_of(e->c);
    return says(e,
                _("%lld of %lld numbers (the first is element %s) are %g times as large as "
                  "expected%s"),
                (long long)e->wrong, (long long)e->count,
                address_text(e->got, e->first_wrong, (char[96]){0}), factor,
                e->want->check != GRADIENT ? ""
                : factor == replicas       ? _(": the sum over the replicas is not divided there")
                : factor * replicas == 1   ? _(": there it is divided twice")
                                           : "");
}

static bool some_scaled(const Evidence *e)
{
    const double tp = e->c->tp, replicas = replicas_of(e->c);
    return some_times(e, replicas) || some_times(e, 1 / replicas) || some_times(e, tp) ||
           some_times(e, 1 / tp) || some_times(e, 2) || some_times(e, 0.5);
}

/* Have all numbers of a case with very small or very large numbers become zero? */
static bool nothing_left(const Evidence *e)
{
    if (e->zeros < e->count || e->c->exponent == 0 || e->most_right == 0)
        return false;
    return says(e, _("it is zero everywhere, where numbers of up to %.2g are expected: %s"),
                e->most_right,
                e->c->exponent < 0 ? _("are small ones rounded away, or treated as zero?")
                                   : _("are large ones taken for overflow, or clipped?"));
}

bool partial_match(const Evidence *e)
{
    bool made_of_sums = !alike_on_ranks(e->c);
    return e->want->check != METRICS &&
           (cut_off(e) || some_scaled(e) ||
            (made_of_sums && (nothing_left(e) || first_ones_right(e))));
}
