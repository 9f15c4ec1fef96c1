/* Why a check failed, and what its case was. */
#include <stdarg.h>
#include <stdio.h>

#include "base/language.h"
#include "grader/judge/diagnose/trial.h"

static void set_reason(CheckResult *r, int case_index, bool explained, const char *format,
                       va_list args)
{
    r->fails = true;
    if (r->failed && (r->explained || !explained))
        return;
    vsnprintf(r->reason, sizeof r->reason, format, args);
    r->failed = true;
    r->explained = explained;
    r->case_index = case_index;
    r->ending = COMPLETE;
    r->in_calls = false;
    r->repeated = r->alone = false;
}

void fail(LabResult *result, Check check, int case_index, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_reason(&result->check[check], case_index, true, format, args);
    va_end(args);
}

void fail_by_ending(Trial *t, Check check, const char *format, ...)
{
    va_list args;
    CheckResult *r = &t->result->check[check];
    r->fails = true;
    if (r->failed && r->explained)
        return;
    va_start(args, format);
    set_reason(r, t->index, true, format, args);
    va_end(args);
    r->ending = t->outcome->ending;
    r->in_calls = true;
}

void fail_by_numbers(LabResult *result, Check check, int case_index, bool explained,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_reason(&result->check[check], case_index, explained, format, args);
    va_end(args);
}

const char *case_text(const Case *c, char text[160])
{
    int length = snprintf(text, 160, c->world > 1 ? _("%d ranks") : _("%d rank"), c->world);
    const Lab *lab = lab_of(c->lab);
    if (lab->has_replicas)
        length += snprintf(text + length, 160 - (size_t)length, ", tp=%d", c->tp);
    for (int i = 0; i < CASE_SIZES; i++) {
        int value = case_size(c, i);
        if (value)
            length += snprintf(text + length, 160 - (size_t)length, "%s%s=%d", i ? " " : ", ",
                               case_sizes[i].shown, value);
        if (value && i == 0 && c->more_B)
            length +=
                snprintf(text + length, 160 - (size_t)length, _(" (then %d)"), c->B + c->more_B);
    }
    if (lab->sizes & SIZE_P)
        snprintf(text + length, 160 - (size_t)length, " dropout=%g", c->training ? c->p : 0.0);
    return text;
}
