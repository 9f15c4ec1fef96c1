#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grader/judge/judge.h"
#include "grader/judge/lines.h"

enum { ROUNDED = 3 };

static const double unit = 0x1p-24; /* half a unit in the last place of 1 in single precision */

/* One case under judgement. */
typedef struct Trial {
    LabResult *result;
    const Case *c;
    int index;
    const Outcome *outcome;
    Expected expected;
    int rank;
} Trial;

void fail(LabResult *result, Check check, int case_index, const char *format, ...)
{
    CheckResult *r = &result->check[check];
    if (r->failed)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(r->reason, sizeof r->reason, format, args);
    va_end(args);
    r->failed = true;
    r->case_index = case_index;
}

static const char *case_text(const Case *c, char text[160])
{
    int length =
        snprintf(text, 160, "%d rank%s, B=%d S=%d H=%d", c->world, c->world > 1 ? "s" : "", c->B, c->S, c->H);
    if (c->lab == 4 || c->lab == 7)
        length += snprintf(text + length, 160 - (size_t)length, " A=%d", c->A);
    if (c->lab == 5 || c->lab == 6)
        length += snprintf(text + length, 160 - (size_t)length, " inner=%d out=%d", c->F, c->out);
    if (c->lab == 2)
        length += snprintf(text + length, 160 - (size_t)length, " out=%d", c->out);
    if (c->lab == 3)
        length += snprintf(text + length, 160 - (size_t)length, " V=%d", c->V);
    if (c->lab > 4)
        snprintf(text + length, 160 - (size_t)length, " dropout=%g", c->training ? c->p : 0.0);
    return text;
}

/* 8 times the largest error of single precision with the sums in other orders, and a unit in the last place.
 */
static double tolerance_of(const Expected *expected, const Entry *exact)
{
    double spread = 0, largest = 0;
    for (int64_t i = 0; i < exact->count; i++)
        largest = fmax(largest, fabs(numbers_of(exact)[i]));
    for (int k = 1; k <= expected->rounded; k++) {
        const Entry *other = (const Entry *)(expected->base[k] + ((const char *)exact - expected->base[0]));
        for (int64_t i = 0; i < exact->count; i++)
            spread = fmax(spread, fabs(numbers_of(other)[i] - numbers_of(exact)[i]));
    }
    return 8 * spread + unit * largest;
}

static int64_t global_index(const Entry *got, int64_t local)
{
    if (got->placement_kind != SHARD)
        return local;
    int64_t inner = 1, held = got->end - got->begin;
    for (int i = got->placement_dim + 1; i < got->shape.rank; i++)
        inner *= got->shape.size[i];
    int64_t outer = local / inner / held;
    return (outer * got->shape.size[got->placement_dim] + got->begin + local / inner % held) * inner +
           local % inner;
}

/* How many numbers a rank that holds begin..end of this tensor has. */
static int64_t count_held(const Entry *e)
{
    if (e->placement_kind != SHARD)
        return shape_count(e->shape);
    if (e->placement_dim < 0 || e->placement_dim >= e->shape.rank || e->begin < 0 || e->end < e->begin ||
        e->end > e->shape.size[e->placement_dim])
        return -1;
    return shape_count(e->shape) / e->shape.size[e->placement_dim] * (e->end - e->begin);
}

static void fail_values(Trial *t, const Entry *got, const Entry *want, double tolerance, int64_t worst)
{
    char text[160], why[700], where[64] = "";
    double right = numbers_of(want)[global_index(got, worst)], is = numbers_of(got)[worst];
    explain(why, sizeof why, t->c, t->rank, got, want, tolerance, t->outcome);
    snprintf(where, sizeof where, "element %lld of %lld", (long long)worst, (long long)got->count);
    fail(t->result, (Check)want->check, t->index,
         "%s\n%s on rank %d (%s): %s is %.7g, expected %.7g (error %.2g, allowed %.2g)", why, got->name,
         t->rank, case_text(t->c, text), where, is, right, fabs(is - right), tolerance);
}

static void fail_shape(Trial *t, const Entry *got, const Entry *want)
{
    char a[64], b[64], text[160], why[700];
    explain(why, sizeof why, t->c, t->rank, got, want, 0, t->outcome);
    fail(t->result, (Check)want->check, t->index, "%s\n%s on rank %d (%s): the shape is %s, expected %s", why,
         got->name, t->rank, case_text(t->c, text),
         got->count ? shape_text(got->shape, a) : "that of nothing: there is no such tensor",
         shape_text(want->shape, b));
}

static void compare_values(Trial *t, const Entry *got, const Entry *want)
{
    if (!shape_equal(got->shape, want->shape) || got->count != count_held(got)) {
        fail_shape(t, got, want);
        return;
    }
    double tolerance = tolerance_of(&t->expected, want), largest = -1;
    int64_t worst = 0;
    for (int64_t i = 0; i < got->count; i++) {
        double error = fabs(numbers_of(got)[i] - numbers_of(want)[global_index(got, i)]);
        if (!(error <= tolerance) && !(error <= largest)) { /* written so that NaN fails */
            largest = isnan(error) ? INFINITY : error;
            worst = i;
        }
    }
    if (largest >= 0)
        fail_values(t, got, want, tolerance, worst);
}

static void compare_parameter(Trial *t, const Entry *got, const Entry *want)
{
    char a[64], b[64], text[160];
    const Case *c = t->c;
    int cuts = lab_cuts(t->result->lab, want->name);
    if (!shape_equal(got->shape, want->shape)) {
        fail(t->result, SHARDING, t->index,
             "parameter %s is declared as %s; its undivided shape is %s: declare that, the placement does "
             "the cutting (%s)",
             got->name, shape_text(got->shape, a), shape_text(want->shape, b), case_text(c, text));
        return;
    }
    int cut = got->placement_kind != SHARD ? CUT_NOT : got->placement_dim == 0 ? CUT_0 : CUT_1;
    if (c->tp > 1 && !(cuts & cut)) {
        fail(t->result, SHARDING, t->index,
             cuts == CUT_NOT  ? "parameter %s is cut, but every rank needs all of it (%s)"
             : cut == CUT_NOT ? "every rank holds the whole of parameter %s: nothing was distributed, in "
                                "memory or in work (%s)"
                              : "parameter %s is cut along the wrong dimension (%s)",
             got->name, case_text(c, text));
        return;
    }
    Range held = chunk(cut == CUT_NOT ? 0 : want->shape.size[got->placement_dim], t->rank, c->tp);
    bool right = got->count == count_held(got) &&
                 (cut == CUT_NOT || (got->begin == held.begin && got->end == held.end));
    if (!right) {
        fail(t->result, SHARDING, t->index, "rank %d does not hold its part of parameter %s (%s)", t->rank,
             got->name, case_text(c, text));
        return;
    }
    for (int64_t i = 0; i < got->count; i++) {
        double initial = (double)(float)numbers_of(want)[global_index(got, i)];
        if (!(numbers_of(got)[i] == initial)) {
            fail(t->result, INITIAL_VALUES, t->index,
                 "parameter %s begins with %.7g at element %lld on rank %d, expected %.7g: initial values "
                 "belong to the "
                 "undivided parameter and its name, whatever the layout (%s)",
                 got->name, numbers_of(got)[i], (long long)i, t->rank, initial, case_text(c, text));
            return;
        }
    }
}

static const Entry *entry_of_rank(const Trial *t, int rank, int kind, const char *name)
{
    int64_t offset = t->outcome->begin[rank];
    return find_entry(t->outcome->stream[rank], t->outcome->end[rank], kind, name, &offset);
}

static void compare_traffic(Trial *t, const Entry *want)
{
    char text[160];
    double sent = 0, calls = 0, n = t->c->tp;
    const Entry *got = NULL;
    for (int rank = 0; rank < t->c->world; rank++) {
        got = entry_of_rank(t, rank, TRAFFIC, want->name);
        if (!got || got->count != 3)
            return; /* the end of the case says why */
        sent += numbers_of(got)[0];
        calls = fmax(calls, numbers_of(got)[1]);
    }
    double allowed = numbers_of(want)[got && numbers_of(got)[2] != 0 ? 2 : 0], usual = numbers_of(want)[1];
    double padding = allowed > 0 ? 2 * (n - 1) * (n - 1) * fmax(usual, 1) * 2 : 0;
    if (!(sent <= allowed + padding))
        fail(t->result, COMMUNICATION, t->index,
             "%s: the ranks sent %.0f numbers, and %.0f suffice (%.2f times as much): something is exchanged "
             "that need not "
             "be (%s)",
             want->name, sent, allowed, allowed > 0 ? sent / allowed : INFINITY, case_text(t->c, text));
    else if (!(calls <= 2 * usual + 2))
        fail(t->result, COMMUNICATION, t->index,
             "%s: %.0f calls for what takes %.0f: send it in one piece (%s)", want->name, calls, usual,
             case_text(t->c, text));
}

/* Why the entries of this case end early: the first line of a report. */
static void story_of(const Trial *t, char *text, size_t size)
{
    for (int rank = 0; rank < t->c->world; rank++) {
        int64_t offset = t->outcome->begin[rank];
        const Entry *entry;
        while ((entry = next_entry(t->outcome->stream[rank], t->outcome->end[rank], &offset))) {
            if (entry->kind != REFUSED || entry->count * (int64_t)sizeof(double) < (int64_t)sizeof(Problem))
                continue;
            char line[64];
            const Problem *problem = (const Problem *)numbers_of(entry);
            line_of(entry->address, line);
            snprintf(text, size, "%.*s%s%s (rank %d)\nHINT: %.*s", (int)sizeof problem->what - 1,
                     problem->what, line[0] ? ", at " : "", line, rank, (int)sizeof problem->hint - 1,
                     problem->hint);
            return;
        }
    }
    static const char *const endings[] = {[COMPLETE] = "the case did not come to its end",
                                          [CRASHED] = "the program crashed",
                                          [HUNG] = "the ranks wait for each other for ever",
                                          [LOOPED] = "a rank computes for ever",
                                          [NOT_RUN] = "the case was not run"};
    snprintf(text, size, "%s%s%s", endings[t->outcome->ending], t->outcome->story[0] ? ": " : "",
             t->outcome->story);
}

static void fail_missing(Trial *t, const Entry *want)
{
    char why[1500], text[160];
    if (want->kind == PARAMETER && entry_of_rank(t, t->rank, CASE, "") &&
        entry_of_rank(t, t->rank, FINISHED, "")) {
        fail(t->result, SHARDING, t->index, "parameter %s is missing: each layer has its own (%s)",
             want->name, case_text(t->c, text));
        return;
    }
    story_of(t, why, sizeof why);
    Check check = (Check)want->check;
    fail(t->result, check, t->index, "%.1500s\nnot reached: %s on rank %d (%s)", why, want->name, t->rank,
         case_text(t->c, text));
    if (want->kind == PARAMETER)
        fail(t->result, INITIAL_VALUES, t->index, "%.1500s\nnot reached: %s on rank %d (%s)", why, want->name,
             t->rank, case_text(t->c, text));
}

static void compare_expected(Trial *t)
{
    int64_t offset = 0;
    const Entry *want;
    while ((want = next_entry(t->expected.base[0], t->expected.used[0], &offset))) {
        t->result->check[want->check].looked_at = true;
        if (want->kind == PARAMETER)
            t->result->check[INITIAL_VALUES].looked_at = true;
        const Entry *got = entry_of_rank(t, t->rank, want->kind, want->name);
        if (!got)
            fail_missing(t, want);
        else if (want->kind == PARAMETER)
            compare_parameter(t, got, want);
        else if (want->kind == TRAFFIC && t->rank == 0)
            compare_traffic(t, want);
        else if (want->kind == VALUES)
            compare_values(t, got, want);
    }
}

/* Parameters that the plain layer does not have, and requests that nobody waited for. */
static void look_for_more(Trial *t)
{
    char text[160];
    int64_t offset = t->outcome->begin[t->rank];
    const Entry *entry;
    while ((entry = next_entry(t->outcome->stream[t->rank], t->outcome->end[t->rank], &offset))) {
        int64_t from = 0;
        if (entry->kind == PARAMETER &&
            !find_entry(t->expected.base[0], t->expected.used[0], PARAMETER, entry->name, &from))
            fail(t->result, SHARDING, t->index,
                 "there is a parameter %.63s that the layer does not need: it takes memory (%s)", entry->name,
                 case_text(t->c, text));
        if (entry->kind == LEFT_OVER)
            fail(t->result, FORWARD, t->index,
                 "an exchange was started and not waited for: a result was read before the exchange was "
                 "complete (%s)",
                 case_text(t->c, text));
    }
}

static bool reached_todo(Trial *t)
{
    int64_t offset = t->outcome->begin[t->rank];
    const Entry *entry;
    while ((entry = next_entry(t->outcome->stream[t->rank], t->outcome->end[t->rank], &offset)))
        if (entry->kind == NOT_STARTED) {
            char line[64];
            line_of(entry->address, line);
            t->result->state = NOT_STARTED_YET;
            snprintf(t->result->remark, sizeof t->result->remark, "TODO(%d) in %.63s%s%s", entry->check,
                     entry->name, line[0] ? ", " : "", line);
            return true;
        }
    return false;
}

void judge_case(LabResult *result, const Case *c, int case_index, const Outcome *outcome)
{
    Trial t = {.result = result, .c = c, .index = case_index, .outcome = outcome};
    for (t.rank = 0; t.rank < c->world && result->state == GRADED; t.rank++) {
        if (reached_todo(&t))
            return;
        if (t.rank == 0 || c->lab == 1) {
            if (t.rank)
                expected_free(&t.expected);
            t.expected = expect(c, t.rank, NO_SUSPECT, ROUNDED);
        }
        compare_expected(&t);
        look_for_more(&t);
    }
    expected_free(&t.expected);
}
