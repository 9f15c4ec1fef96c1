/* What every rank of a tp group called whole, and held: since which line do they differ? */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/language.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/mpi/lines.h"
#include "grader/judge/diagnose/trial.h"

/* Rounding, in units of the sum of all absolute values. */
static const double alike = 1e-5;

static bool same_place(const Value *a, const Value *b)
{
    return !strcmp(a->word, b->word) && a->address == b->address && a->count == b->count &&
           a->gradient == b->gradient;
}

static bool same_numbers(const Value *a, const Value *b)
{
    if (isnan(a->sum) && isnan(b->sum))
        return true;
    return fabs(a->sum - b->sum) <= alike * fmax(a->size, b->size);
}

/* The index of the first value that two ranks hold differently, or -1; not beyond the point where they do different things. */
static int64_t first_other(const RankCalls *a, const RankCalls *b)
{
    for (int64_t i = 0; i < a->values_count && i < b->values_count; i++) {
        if (!same_place(&a->value[i], &b->value[i]))
            return -1;
        if (!same_numbers(&a->value[i], &b->value[i]))
            return i;
    }
    return -1;
}

bool replicas_diverge(const Calls *calls, int tp, char *text, size_t size)
{
    for (int rank = 0; rank < calls->ranks; rank++) {
        int first = rank / tp * tp;
        int64_t i = first_other(&calls->rank[first], &calls->rank[rank]);
        if (i < 0)
            continue;
        const Value *value = &calls->rank[first].value[i];
        char line[64];
        line_of(value->address, line);
        snprintf(
            text, size,
            value->gradient
                ? _("ranks %d and %d hold different gradients of what is called whole since %s (that of the "
                    "result of %s)")
                : _("ranks %d and %d hold different values of what is called whole since %s (the result of "
                    "%s)"),
            first, rank, line[0] ? line : _("a word of the lab"), value->word);
        return true;
    }
    return false;
}

bool divergence_explains(const Trial *t, char *text, size_t size)
{
    return t->outcome->calls && replicas_diverge(t->outcome->calls, t->c->tp, text, size);
}
