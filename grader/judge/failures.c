#include <stdarg.h>
#include <stdio.h>

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

const char *case_text(const Case *c, char text[160])
{
    int length = snprintf(text, 160, "%d rank%s", c->world, c->world > 1 ? "s" : "");
    if (c->lab >= 8)
        length += snprintf(text + length, 160 - (size_t)length, ", tp=%d", c->tp);
    if (c->lab == 8 || c->lab == 10)
        return text;
    length += snprintf(text + length, 160 - (size_t)length, ", B=%d S=%d H=%d", c->B, c->S, c->H);
    if (c->lab == 4 || c->lab == 7)
        length += snprintf(text + length, 160 - (size_t)length, " A=%d", c->A);
    if (c->lab == 5 || c->lab == 6)
        length += snprintf(text + length, 160 - (size_t)length, " inner=%d out=%d", c->F, c->out);
    if (c->lab == 2)
        length += snprintf(text + length, 160 - (size_t)length, " out=%d", c->out);
    if (c->lab == 3)
        length += snprintf(text + length, 160 - (size_t)length, " V=%d", c->V);
    if (c->lab > 4 && c->lab < 8)
        snprintf(text + length, 160 - (size_t)length, " dropout=%g", c->training ? c->p : 0.0);
    return text;
}
