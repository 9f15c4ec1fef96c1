#include <math.h>
#include <stdio.h>
#include <string.h>

#include "grader/judge/judge.h"
#include "grader/judge/lines.h"

static bool close_to(const double *a, const double *b, double factor, int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(a[i] - factor * b[i]) <= tolerance * fmax(1, fabs(factor))))
            return false;
    return true;
}

static bool has_nan(const Entry *got)
{
    for (int64_t i = 0; i < got->count; i++)
        if (isnan(numbers_of(got)[i]))
            return true;
    return false;
}

static bool is_zero(const Entry *got)
{
    for (int64_t i = 0; i < got->count; i++)
        if (numbers_of(got)[i] != 0)
            return false;
    return got->count > 0;
}

/* The first broken rule of placement that a rank has noted: it names the line, and the numbers say that it
 * mattered. */
static bool noted(char *text, size_t size, int rank, const Outcome *outcome)
{
    int64_t offset = outcome->begin[rank];
    const Entry *entry;
    while ((entry = next_entry(outcome->stream[rank], outcome->end[rank], &offset))) {
        if (entry->kind != NOTE || entry->count * (int64_t)sizeof(double) < (int64_t)sizeof(Problem))
            continue;
        char line[64];
        const Problem *problem = (const Problem *)numbers_of(entry);
        line_of(entry->address, line);
        snprintf(text, size, "%.400s%s%s\nHINT: %.200s", problem->what, line[0] ? ", at " : "", line,
                 problem->hint);
        return true;
    }
    return false;
}

/* Is all of it a constant times what it should be? */
static bool multiple(char *text, size_t size, const Case *c, const Entry *got, const Entry *want,
                     double tolerance)
{
    const struct {
        double factor;
        const char *says;
    } factors[] = {
        {c->tp, "it is %g times the expected one, once for each rank: it is summed over the ranks although "
                "it was complete"},
        {(double)c->tp * c->tp,
         "it is %g times the expected one: it is summed over the ranks twice too often"},
        {1.0 / c->tp, "it is %g times the expected one: it is divided by the number of ranks"},
        {1.0 / c->B, "it is %g times the expected one: a mean over the batch is taken once too often"},
        {1.0 / (c->B * c->S),
         "it is %g times the expected one: a mean over the rows is taken once too often"},
        {2, "it is %g times the expected one: it is counted twice"},
        {0.5, "it is %g times the expected one: it is halved"},
        {-1, "it is %g times the expected one: the sign is wrong"},
    };
    if (got->placement_kind == SHARD)
        return false;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (factors[i].factor != 1 &&
            close_to(numbers_of(got), numbers_of(want), factors[i].factor, got->count, tolerance)) {
            snprintf(text, size, factors[i].says, factors[i].factor);
            return true;
        }
    return false;
}

static bool same_numbers_elsewhere(char *text, size_t size, const Entry *got, const Entry *want,
                                   double tolerance)
{
    int64_t found = 0;
    for (int64_t i = 0; i < got->count && got->count <= 4096; i++)
        for (int64_t k = 0; k < want->count; k++)
            if (fabs(numbers_of(got)[i] - numbers_of(want)[k]) <= tolerance) {
                found++;
                break;
            }
    if (got->count < 4 || found < got->count)
        return false;
    snprintf(
        text, size,
        "the right numbers are all there but in the wrong places: check along which dimension the pieces "
        "are joined or cut");
    return true;
}

static bool suspected(char *text, size_t size, const Case *c, int rank, const Entry *got, const Entry *want,
                      double tolerance)
{
    for (int s = 0; s < suspect_count(); s++) {
        const Suspect *suspect = suspect_at(s);
        if (suspect->lab != (c->lab == 1 ? 1 : 0) || got->placement_kind == SHARD)
            continue;
        Expected wrong = expect(c, rank, s, 0);
        int64_t offset = 0;
        const Entry *entry = find_entry(wrong.base[0], wrong.used[0], VALUES, want->name, &offset);
        bool same = entry && entry->count == got->count &&
                    !close_to(numbers_of(entry), numbers_of(want), 1, got->count, tolerance) &&
                    close_to(numbers_of(got), numbers_of(entry), 1, got->count, 4 * tolerance);
        expected_free(&wrong);
        if (same) {
            snprintf(text, size, "%s", suspect->sentence);
            return true;
        }
    }
    return false;
}

static const Entry *of_rank(const Outcome *outcome, int rank, const char *name)
{
    int64_t offset = outcome->begin[rank];
    return find_entry(outcome->stream[rank], outcome->end[rank], VALUES, name, &offset);
}

static bool ranks_differ(char *text, size_t size, const Case *c, const Entry *got, const Entry *want,
                         double tolerance, const Outcome *outcome)
{
    const Entry *first = of_rank(outcome, 0, want->name);
    if (c->world == 1 || !first || first->count != want->count || got->placement_kind == SHARD || c->lab == 1)
        return false;
    if (first != got && close_to(numbers_of(first), numbers_of(want), 1, want->count, tolerance)) {
        snprintf(text, size, "the result is right on the first rank only");
        return true;
    }
    for (int rank = 1; rank < c->world; rank++) {
        const Entry *other = of_rank(outcome, rank, want->name);
        if (other && other->count == first->count &&
            !close_to(numbers_of(other), numbers_of(first), 1, first->count, tolerance)) {
            snprintf(
                text, size,
                "ranks no longer agree on a tensor that should be the same everywhere: each has its own part "
                "of the sum, or drew its own random numbers");
            return true;
        }
    }
    return false;
}

static bool wrong_size(char *text, size_t size, const Case *c, const Entry *got, const Entry *want)
{
    int64_t is = shape_count(got->shape), right = shape_count(want->shape);
    if (got->count && shape_equal(got->shape, want->shape))
        return false;
    if (got->count == 0 && want->check == INPUT_GRADIENT)
        snprintf(text, size,
                 "no gradient flowed back: a group_... word gives values only; duplication, all_reduce and "
                 "all_gather are on the tape");
    else if (is == right)
        snprintf(
            text, size,
            "the blocks are all there but in the wrong places: check along which dimension they are joined");
    else if (is * c->tp == right)
        snprintf(text, size, "this is one rank's piece: the pieces of all ranks are still to be joined");
    else if (is == right * c->tp)
        snprintf(text, size, "it is %d times too large: it was joined although it was whole", c->tp);
    else
        snprintf(text, size, "the shape is not the one asked for");
    return true;
}

void explain(char *text, size_t size, const Case *c, int rank, const Entry *got, const Entry *want,
             double tolerance, const Outcome *outcome)
{
    if (wrong_size(text, size, c, got, want) && (c->tp == 1 || got->count == 0))
        return;
    if (noted(text, size, rank, outcome) || !shape_equal(got->shape, want->shape))
        return;
    if (has_nan(got))
        snprintf(
            text, size,
            "the result contains values that are not numbers: a part of it was never computed, or was read "
            "before it was");
    else if (is_zero(got) && want->check != FORWARD)
        snprintf(text, size,
                 "it is zero everywhere: no gradient flowed back. A group_... word gives values only; "
                 "duplication, all_reduce and all_gather are on the tape");
    else if (!multiple(text, size, c, got, want, tolerance) &&
             !suspected(text, size, c, rank, got, want, tolerance) &&
             !same_numbers_elsewhere(text, size, got, want, tolerance) &&
             !ranks_differ(text, size, c, got, want, tolerance, outcome))
        snprintf(text, size, "the values do not match");
}
