#include "grader/judge/diagnose/evidence.h"
#include "grader/judge/diagnose/suspects.h"
#include "grader/labs/operations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"

bool close_to(const double *a, const double *b, double factor, int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(a[i] - factor * b[i]) <= tolerance * fmax(1, fabs(factor))))
            return false;
    return true;
}

/* Such a number goes through sums and products as it is, but for its sign. */
static bool is_under_way(double x)
{
    const uint32_t bits = UNDER_WAY;
    float mark;
    memcpy(&mark, &bits, sizeof mark);
    const double wide = copysign((double)mark, 1), positive = copysign(x, 1);
    uint64_t is, under_way;
    memcpy(&is, &positive, sizeof is);
    memcpy(&under_way, &wide, sizeof under_way);
    return is == under_way;
}

bool not_a_number(const Evidence *e, char *text, size_t size)
{
    for (int64_t i = 0; i < e->count; i++)
        if (isinf(e->is[i])) {
            snprintf(
                text, size,
                _("the result contains infinite values: something was divided by zero, or grew without end"));
            return true;
        } else if (isnan(e->is[i])) {
            snprintf(
                text, size, "%s",
                is_under_way(e->is[i])
                    ? _("a buffer was read before the message or the sum that fills it was complete: "
                        "MPI_Wait "
                        "comes first")
                    : _("the result contains values that are not numbers: 0 was divided by 0, or a part of "
                        "it "
                        "was never computed, or was read before it was or after its memory was given back "
                        "(SAN=1 "
                        "finds the line of that)"));
            return true;
        }
    return false;
}

/* What a layer was given is written down after its forward pass. */
bool input_altered(const Evidence *e, char *text, size_t size)
{
    bool mask = e->want->label.what == MASK_OF;
    if (!mask && e->want->label.what != INPUT_OF)
        return false;
    snprintf(text, size, "%s",
             mask ? _("the layer altered its mask; another operation still needs the old values")
                  : _("the layer altered its input; another operation still needs the old values"));
    return true;
}

static bool all_zero(const Evidence *e)
{
    for (int64_t i = 0; i < e->count; i++)
        if (e->is[i] != 0)
            return false;
    return true;
}

bool nothing_flowed_back(const Evidence *e, char *text, size_t size)
{
    if (e->want->check == FORWARD || e->count == 0 || !all_zero(e))
        return false;
    if (e->trial->result->lab->over_replicas) {
        snprintf(text, size,
                 _("it is zero everywhere: 1 / mesh->dp_degree is 0 when both are integers"));
        return true;
    }
    if (e->trial->result->check[FORWARD].failed) {
        snprintf(
            text, size,
            _("it is zero everywhere; the forward pass is wrong already, so look there first"));
        return true;
    }
    snprintf(
        text, size,
        _("it is zero everywhere: no gradient flowed back. A group_... word gives values only; duplication, "
          "all_reduce and all_gather are on the tape"));
    return true;
}

/* The constant that comes nearest to making one of the other, by least squares. */
static double factor_between(const Evidence *e)
{
    double both = 0, right = 0;
    for (int64_t i = 0; i < e->count; i++) {
        both += e->is[i] * e->right[i];
        right += e->right[i] * e->right[i];
    }
    return right > 0 ? both / right : 1;
}

/* Is all of it a constant times what it should be? */
bool multiple(const Evidence *e, char *text, size_t size)
{
    const Case *c = e->trial->c;
    bool copy = is_operation(e->want, F) && e->want->label.what == OUTPUT_OF;
    const struct {
        double factor;
        const char *says;
    } factors[] = {
        {c->tp,
         copy
             ? N_("it is %g times the expected one: duplication copies in the forward pass and sums in "
                  "the backward "
                  "pass; look again at which of the two talks in which direction")
             : N_("it is %g times the expected one, once for each rank: it is summed over the ranks "
                  "although it was "
                  "complete")},
        {(double)c->tp * c->tp,
         N_("it is %g times the expected one: it is summed over the ranks twice too often")},
        {1.0 / c->tp, N_("it is %g times the expected one: it is divided by the number of ranks")},
        {1.0 / c->B,
         c->B == 2
             ? N_("it is %g times the expected one: it is halved, or a mean over the batch is "
                  "taken once too often")
             : N_("it is %g times the expected one: a mean over the batch is taken once too "
                  "often")},
        {1.0 / (c->B * c->S),
         N_("it is %g times the expected one: a mean over the rows is taken once too often")},
        {2, N_("it is %g times the expected one: it is counted twice")},
        {0.5, N_("it is %g times the expected one: it is halved")},
        {-1, N_("it is %g times the expected one: the sign is wrong")},
    };
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (factors[i].factor != 1 &&
            close_to(e->is, e->right, factors[i].factor, e->count, e->tolerance)) {
            snprintf(text, size, _(factors[i].says), factors[i].factor);
            return true;
        }
    return false;
}

/* A constant that has no better name. */
bool scaled(const Evidence *e, char *text, size_t size)
{
    double factor = factor_between(e);
    if (dropout_differs(e, text, size)) /* with little kept, a factor says nothing */
        return false;
    if (e->count < 3 || fabs(factor - 1) < 1e-3 ||
        !close_to(e->is, e->right, factor, e->count, e->tolerance))
        return false;
    if (factor == 0)
        snprintf(text, size, _("it is zero everywhere"));
    else
        snprintf(
            text, size,
            _("all of it is %.4g times the expected one: a constant factor is wrong, or forgotten"),
            factor);
    return true;
}

static Expected *played(Trial *t, int suspect)
{
    if (!t->suspected)
        t->suspected = calloc(MISTAKES, sizeof *t->suspected);
    if (!t->suspected[suspect].base)
        t->suspected[suspect] = expect(t->c, t->rank, suspect, 0);
    return &t->suspected[suspect];
}

bool gives(const Evidence *e, const double *whole)
{
    for (int64_t i = 0; i < e->count; i++)
        if (!(fabs(e->is[i] - whole[global_index(e->got, i)]) <= 4 * e->tolerance))
            return false;
    return true;
}

bool suspected(const Evidence *e, char *text, size_t size)
{
    if (alike_on_ranks(e->trial->c) &&
        all_zero(e)) /* many mistakes give zeros, when little is kept by dropout */
        return false;
    for (int s = 0; s < MISTAKES; s++) {
        const Suspect *suspect = &suspects[s];
        if (!(suspect->families & kind_of_case(e->trial->c)->mistakes))
            continue;
        const Expected *wrong = played(e->trial, s);
        int64_t offset = 0;
        const Entry *entry = find_entry(wrong->base, wrong->used, VALUES, e->want->label, &offset);
        if (entry && entry->count == e->want->count && gives(e, numbers_of(entry)) &&
            !gives(e, numbers_of(e->want))) {
            const Case *c = e->trial->c;
            if (s == OWN_ONLY && brought_by_one(e, text, size))
                return true;
            snprintf(
                text, size, "%s%s", _(suspect->sentence),
                s != GRADIENT_MISSING ? ""
                : c->dy_exponent < 0 || c->exponent < 0
                    ? _("; or it was lost for being small: the gradients of this case are millionths")
                : c->dy_exponent > 0 || c->exponent > 0
                    ? _("; or large ones are cut off: those of this case are millions")
                    : "");
            return true;
        }
    }
    return false;
}

/* The gradient of a shard: the sum of all ranks' parts, which are gradients of different numbers. */
bool added_up_over_ranks(const Evidence *e, char *text, size_t size)
{
    int64_t held = e->got->end - e->got->begin,
            all = e->want->shape.size[e->got->placement_dim & 3];
    if (e->trial->c->tp == 1 || e->got->placement_kind != SHARD || held * e->trial->c->tp != all)
        return false;
    for (int64_t i = 0; i < e->count; i++) {
        Entry part = *e->got;
        double sum = 0;
        for (part.begin = 0, part.end = held; part.end <= all; part.begin += held, part.end += held)
            sum += numbers_of(e->want)[global_index(&part, i)];
        if (!(fabs(e->is[i] - sum) <= 4 * e->tolerance))
            return false;
    }
    snprintf(
        text, size,
        _("the parts of different ranks were added up, but these are different numbers of the parameter"));
    return true;
}

bool of_another_rank(const Evidence *e, char *text, size_t size)
{
    const Case *c = e->trial->c;
    for (int rank = 0; !alike_on_ranks(c) && rank < c->world; rank++) {
        if (rank == e->trial->rank)
            continue;
        Expected other = expect(c, rank, NO_MISTAKE, 0);
        int64_t offset = 0;
        const Entry *entry = find_entry(other.base, other.used, VALUES, e->want->label, &offset);
        bool same = entry && entry->count == e->count &&
                    close_to(e->is, numbers_of(entry), 1, e->count, e->tolerance);
        expected_free(&other);
        if (same) {
            snprintf(text, size, _("it is that of rank %d: each rank takes its own part"), rank);
            return true;
        }
    }
    return false;
}

bool same_numbers_elsewhere(const Evidence *e, char *text, size_t size)
{
    int64_t zeros = 0; /* more of them than there should be are no numbers in a wrong place */
    if (e->count < 4 || e->count > 4096)
        return false;
    for (int64_t i = 0; i < e->count; i++)
        zeros += (e->is[i] == 0) - (e->right[i] == 0);
    for (int64_t i = 0; i < e->count; i++) {
        bool found = false;
        for (int64_t k = 0; k < e->want->count && !found; k++)
            found = fabs(e->is[i] - numbers_of(e->want)[k]) <= e->tolerance;
        if (!found || zeros > 0)
            return false;
    }
    snprintf(
        text, size,
        _("the right numbers are all there but in the wrong places: check along which dimension the "
          "pieces are joined "
          "or cut, and in which order"));
    return true;
}

bool nearly_right(const Evidence *e, char *text, size_t size)
{
    double error = 0, largest = 0;
    int64_t wrong = 0, missing = 0, too_many = 0;
    for (int64_t i = 0; i < e->count; i++) {
        error = fmax(error, fabs(e->is[i] - e->right[i]));
        largest = fmax(largest, fabs(e->right[i]));
        if (!is_right(e, i)) {
            wrong++;
            missing += e->is[i] == 0;
            too_many += e->right[i] == 0;
        }
    }
    if (!(error < 0.004 * largest))
        return false;
    if (missing == wrong || too_many == wrong) { /* no rounding makes these */
        snprintf(text, size, "%s",
                 missing == wrong
                     ? _("the numbers that are wrong are small, and each is zero where it "
                         "should not be: a small part is missing")
                     : _("the numbers that are wrong are small, and each should be zero: "
                         "something small was added, or kept, that does not belong there"));
        return true;
    }
    snprintf(
        text, size,
        _("it is nearly right, to about %.0f digits: precision was lost on the way, in a shorter number "
          "format or an approximation, or a small part is missing"),
        floor(-log10(error / largest)));
    return true;
}
