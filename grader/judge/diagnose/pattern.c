/* Finds what the cases in which a check fails have in common. */

#include "grader/judge/diagnose/trial.h"

/* A property of a case, and its description. */
typedef struct Trait {
    bool has;
    const char *words;
} Trait;

/* Lists the traits in order of preference; returns how many there are. */
static int traits_of(const Case *c, Trait traits[TRAITS])
{
    const int B = c->B, S = c->S, replicas = c->tp ? replicas_of(c) : 0;
    const bool training = c->training && c->p > 0;
    const Trait all[] = {
        {c->world == 1, N_("on one rank")},
        {c->tp > 1, N_("with tp above 1")},
        {c->tp == 1, N_("with tp = 1")},
        {c->tp == 2, N_("with tp = 2")},
        {c->tp == 3, N_("with tp = 3")},
        {c->tp == 4, N_("with tp = 4")},
        {c->tp > 2, N_("with tp above 2")},
        {replicas > 1, N_("with several replicas")},
        {replicas == 2, N_("with 2 replicas")},
        {replicas > 2, N_("with more than 2 replicas")},
        {c->tp > 1 && replicas > 1, N_("with tp and dp above 1")},
        {c->pp > 1, N_("with several stages")},
        {training, N_("in training, where dropout acts")},
        {c->training && c->p == 0, N_("in training with p = 0")},
        {!training, N_("where nothing is dropped, in evaluation or with p = 0")},
        {c->flat, N_("where x has two dimensions, [B,H]")},
        {B * S == 1, N_("with a single row, B = S = 1")},
        {B * S > 1, N_("with more than one row")},
        {c->reverse, N_("where the backward pass of the last call comes first")},
        {!c->reverse, N_("where the backward pass of the first call comes first")},
        {c->apart, N_("where the ranks of a group are not neighbours in the world")},
        {c->delay, N_("where a rank arrives late")},
        {c->exponent > 0 || c->dy_exponent > 0, N_("where numbers are large, thousands or more")},
        {c->exponent < 0 || c->dy_exponent < 0, N_("where numbers are small, thousandths or less")},
    };
    _Static_assert(sizeof all / sizeof *all <= TRAITS, "each trait has its counters");
    memcpy(traits, all, sizeof all);
    return sizeof all / sizeof *all;
}
enum { OF_LAYOUT = 12 }; /* the first traits describe the layout; one of them suffices */

static void widen(Extent *span, int size, bool first)
{
    span->low = first || size < span->low ? size : span->low;
    span->high = first || size > span->high ? size : span->high;
}

void pattern_add(Pattern *pattern, const Case *c, bool failed)
{
    int before = (*(failed ? &pattern->failed : &pattern->passed))++;
    Trait traits[TRAITS];
    pattern->lab = c->lab;
    for (int i = 0; i < CASE_SIZES; i++)
        widen(failed ? &pattern->failing[i] : &pattern->passing[i], case_size(c, i), before == 0);
    for (int i = traits_of(c, traits) - 1; i >= 0; i--)
        for (int shared = 0; traits[i].has && shared <= (c->tp > 1); shared++)
            ++*(failed ? &pattern->failed_with[shared][i] : &pattern->passed_with[shared][i]);
}

/* Reports all traits that separate the failing cases, because the reader must find out which one
 * matters. But it reports only the first trait of the layout. */
static bool plain_pattern(const Pattern *pattern, char *text, size_t size)
{
    char words[512] = "";
    Trait traits[TRAITS];
    const int count = traits_of(&(Case){0}, traits);
    for (int shared = 0; shared < 2; shared++) {
        for (int i = 0; i < count; i++)
            if ((i >= OF_LAYOUT || !words[0]) &&
                pattern->failed_with[shared][i] == pattern->failed &&
                pattern->passed_with[shared][i] == 0)
                append(words, sizeof words, "%s%s", words[0] ? _(", and ") : "",
                       _(traits[i].words));
        if (!words[0])
            continue;
        snprintf(text, size, _("It fails only %s%s%s: %d of %d cases"),
                 shared ? _("with tp above 1") : "", shared ? _(", and ") : "", words,
                 pattern->failed, pattern->failed + pattern->passed);
        return true;
    }
    return false;
}

static bool pattern_of_sizes(const Pattern *pattern, char *text, size_t size)
{
    for (int i = 0; i < CASE_SIZES; i++) {
        const Extent *failing = &pattern->failing[i], *passing = &pattern->passing[i];
        bool large = failing->low > passing->high, small = failing->high < passing->low;
        if (!large && !small)
            continue;
        snprintf(text, size,
                 large ? _("It fails only where %s is %d or more: %d of %d cases")
                       : _("It fails only where %s is %d or less: %d of %d cases"),
                 case_size_name(lab_of(pattern->lab), i), large ? failing->low : failing->high,
                 pattern->failed, pattern->failed + pattern->passed);
        return true;
    }
    return false;
}

/* A single case may be the largest in several sizes, and only one of them matters. */
static bool largest_of_all(const Pattern *pattern, char *text, size_t size)
{
    char names[64] = "";
    for (int i = 0; i < CASE_SIZES; i++)
        if (pattern->failing[i].low > pattern->passing[i].high)
            append(names, sizeof names, "%s%s", names[0] ? ", " : "",
                   case_size_name(lab_of(pattern->lab), i));
    if (!names[0])
        return false;
    snprintf(text, size, _("It fails only in this one of %d cases, the largest in %s"),
             1 + pattern->passed, names);
    return true;
}

bool pattern_text(const Pattern *pattern, bool by_size, char *text, size_t size)
{
    return pattern->failed && pattern->passed &&
           (plain_pattern(pattern, text, size) ||
            (by_size &&
             (pattern->failed == 1 ? largest_of_all : pattern_of_sizes)(pattern, text, size)));
}
