#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/language.h"
#include "grader/judge/trial.h"

static void set_reason(CheckResult *r, int case_index, bool explained, const char *format, va_list args)
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

void fail_by_numbers(LabResult *result, Check check, int case_index, bool explained, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_reason(&result->check[check], case_index, explained, format, args);
    va_end(args);
}

enum { HAVE_INPUTS = ~(1 << 0 | 1 << 8 | 1 << 10) }; /* labs 8 and 10 only make groups */

int case_size(const Case *c, int i, const char **name)
{
    static const struct {
        const char *name;
        unsigned labs;
        size_t at;
    } sizes[CASE_SIZES] = {
        {"B", HAVE_INPUTS, offsetof(Case, B)},
        {"S", HAVE_INPUTS, offsetof(Case, S)},
        {"H", HAVE_INPUTS, offsetof(Case, H)},
        {"A", 1 << 4 | 1 << 7, offsetof(Case, A)},
        {"inner", 1 << 5 | 1 << 6, offsetof(Case, F)},
        {"out", 1 << 2 | 1 << 5 | 1 << 6, offsetof(Case, out)},
        {"V", 1 << 3, offsetof(Case, V)},
    };
    *name = sizes[i].name;
    return sizes[i].labs >> c->lab & 1 ? *(const int32_t *)((const char *)c + sizes[i].at) : 0;
}

const char *case_text(const Case *c, char text[160])
{
    int length = snprintf(text, 160, c->world > 1 ? _("%d ranks") : _("%d rank"), c->world);
    if (c->lab >= 8)
        length += snprintf(text + length, 160 - (size_t)length, ", tp=%d", c->tp);
    for (int i = 0; i < CASE_SIZES; i++) {
        const char *name;
        int value = case_size(c, i, &name);
        if (value)
            length += snprintf(text + length, 160 - (size_t)length, "%s%s=%d", i ? " " : ", ", name, value);
        if (value && i == 0 && c->more_B)
            length += snprintf(text + length, 160 - (size_t)length, _(" (then %d)"), c->B + c->more_B);
    }
    if (c->lab > 4 && c->lab < 8)
        snprintf(text + length, 160 - (size_t)length, " dropout=%g", c->training ? c->p : 0.0);
    return text;
}
