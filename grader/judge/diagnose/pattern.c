#include "grader/judge/diagnose/pattern.h"

#include <stdio.h>

#include "base/language.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/diagnose/trial.h"

typedef bool Has(const Case *c);

static bool on_one(const Case *c)
{
    return c->world == 1;
}
static bool with_tp(const Case *c)
{
    return c->tp > 1;
}
static bool without_tp(const Case *c)
{
    return c->tp == 1;
}
static bool on_two(const Case *c)
{
    return c->tp == 2;
}
static bool on_three(const Case *c)
{
    return c->tp == 3;
}
static bool on_four(const Case *c)
{
    return c->tp == 4;
}
static bool on_three_or_more(const Case *c)
{
    return c->tp > 2;
}
static bool with_replicas(const Case *c)
{
    return c->world > c->tp;
}
static bool with_two_replicas(const Case *c)
{
    return c->world == 2 * c->tp;
}
static bool with_three_replicas_or_more(const Case *c)
{
    return c->world > 2 * c->tp;
}
static bool in_both_directions(const Case *c)
{
    return c->tp > 1 && c->world > c->tp;
}
static bool training(const Case *c)
{
    return c->training && c->p > 0;
}
static bool evaluating(const Case *c)
{
    return !training(c);
}
static bool in_two_dimensions(const Case *c)
{
    return c->flat;
}
static bool single_row(const Case *c)
{
    return c->B * c->S == 1;
}
static bool several_rows(const Case *c)
{
    return c->B * c->S > 1;
}
static bool reversed(const Case *c)
{
    return c->reverse;
}
static bool in_order(const Case *c)
{
    return !c->reverse;
}
static bool late(const Case *c)
{
    return c->delay;
}

static bool of_large_numbers(const Case *c)
{
    return c->exponent > 0 || c->dy_exponent > 0;
}
static bool of_small_numbers(const Case *c)
{
    return c->exponent < 0 || c->dy_exponent < 0;
}

/* In the order in which they are told. */
static const struct {
    Has *has;
    const char *words;
} traits[] = {
    {on_one, N_("on one rank")},
    {with_tp, N_("where several ranks share a layer")},
    {without_tp, N_("where nothing is shared, tp = 1")},
    {on_two, N_("where 2 ranks share a layer")},
    {on_three, N_("where 3 ranks share a layer")},
    {on_four, N_("where 4 ranks share a layer")},
    {on_three_or_more, N_("where more than 2 ranks share a layer")},
    {with_replicas, N_("with several replicas")},
    {with_two_replicas, N_("with 2 replicas")},
    {with_three_replicas_or_more, N_("with more than 2 replicas")},
    {in_both_directions, N_("with tp and dp above 1")},
    {training, N_("in training, where dropout acts")},
    {evaluating, N_("in evaluation, where nothing is dropped")},
    {in_two_dimensions, N_("where x has two dimensions, [B,H]")},
    {single_row, N_("with a single row, B = S = 1")},
    {several_rows, N_("with more than one row")},
    {reversed, N_("where the backward pass of the last call comes first")},
    {in_order, N_("where the backward pass of the first call comes first")},
    {late, N_("where a rank comes late")},
    {of_large_numbers, N_("where numbers are large, thousands and more")},
    {of_small_numbers, N_("where numbers are small, thousandths and less")},
};
enum {
    PLAIN = sizeof traits / sizeof *traits,
    OF_LAYOUT = 11 /* the first ones, of which one is enough */
};
_Static_assert((int)PLAIN <= (int)TRAITS, "each trait has its counters");
_Static_assert((int)SIZES == (int)CASE_SIZES, "each size has its spans");

static void widen(Extent *span, int size, bool first)
{
    span->low = first || size < span->low ? size : span->low;
    span->high = first || size > span->high ? size : span->high;
}

void pattern_add(Pattern *pattern, const Case *c, bool failed)
{
    int before = (*(failed ? &pattern->failed : &pattern->passed))++;
    for (int i = 0; i < SIZES; i++)
        widen(failed ? &pattern->failing[i] : &pattern->passing[i], case_size(c, i), before == 0);
    for (int i = 0; i < PLAIN; i++) {
        if (!traits[i].has(c))
            continue;
        for (int shared = 0; shared <= with_tp(c); shared++)
            ++*(failed ? &pattern->failed_with[shared][i] : &pattern->passed_with[shared][i]);
    }
}

/* Of the traits that divide them all are told: which of them matters is for the reader to find. */
static bool plain_pattern(const Pattern *pattern, char *text, size_t size)
{
    char words[512] = "";
    for (int shared = 0; shared < 2; shared++) {
        for (int i = 0; i < PLAIN; i++)
            if ((i >= OF_LAYOUT || !words[0]) &&
                pattern->failed_with[shared][i] == pattern->failed &&
                pattern->passed_with[shared][i] == 0)
                append(words, sizeof words, "%s%s", words[0] ? _(", and ") : "",
                       _(traits[i].words));
        if (!words[0])
            continue;
        snprintf(text, size, _("It fails only %s%s%s: %d of %d cases"),
                 shared ? _("where several ranks share a layer") : "", shared ? _(", and ") : "",
                 words, pattern->failed, pattern->failed + pattern->passed);
        return true;
    }
    return false;
}

static bool pattern_of_sizes(const Pattern *pattern, char *text, size_t size)
{
    for (int i = 0; i < SIZES; i++) {
        const Extent *failing = &pattern->failing[i], *passing = &pattern->passing[i];
        bool large = failing->low > passing->high, small = failing->high < passing->low;
        if (!large && !small)
            continue;
        snprintf(text, size,
                 large ? _("It fails only where %s is %d or more: %d of %d cases")
                       : _("It fails only where %s is %d or less: %d of %d cases"),
                 case_sizes[i].shown, large ? failing->low : failing->high, pattern->failed,
                 pattern->failed + pattern->passed);
        return true;
    }
    return false;
}

/* A single case may be the largest in several things, one of which matters. */
static bool largest_of_all(const Pattern *pattern, char *text, size_t size)
{
    char names[64] = "";
    for (int i = 0; i < SIZES; i++)
        if (pattern->failing[i].low > pattern->passing[i].high)
            append(names, sizeof names, "%s%s", names[0] ? ", " : "", case_sizes[i].shown);
    if (!names[0])
        return false;
    snprintf(text, size, _("It fails only in this one of %d cases, the largest in %s"),
             1 + pattern->passed, names);
    return true;
}

bool pattern_text(const Pattern *pattern, char *text, size_t size)
{
    return pattern->failed && pattern->passed &&
           (plain_pattern(pattern, text, size) ||
            (pattern->failed == 1 ? largest_of_all : pattern_of_sizes)(pattern, text, size));
}
