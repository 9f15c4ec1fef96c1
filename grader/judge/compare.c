#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grader/judge/lines.h"
#include "grader/judge/plays.h"
#include "grader/judge/trial.h"

/* How many runs in emulated single precision give the tolerance, and how often a check is explained: to play
 * the suspects takes time, and the first explanation is the one that is told. */
enum { ROUNDED = MAX_ROUNDED, EXPLANATIONS = 6 };

static const double orders = 8;
static const double unit = 0x1p-24; /* half a unit in the last place of 1 in single precision */

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

/* Fails a check because of how its case ended. */
static void fail_by_ending(Trial *t, Check check, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail_by_ending(Trial *t, Check check, const char *format, ...)
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

static void fail_by_numbers(LabResult *result, Check check, int case_index, bool explained,
                            const char *format, ...) __attribute__((format(printf, 5, 6)));

static void fail_by_numbers(LabResult *result, Check check, int case_index, bool explained,
                            const char *format, ...)
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

const Entry *entry_of_rank(const Trial *t, int rank, int kind, const char *name)
{
    int64_t offset = t->outcome->begin[rank];
    return find_entry(t->outcome->stream[rank], t->outcome->end[rank], kind, name, &offset);
}

/* 8 times the largest error of single precision with the sums in other orders, and of two roundings of the largest number,
 * an operand's and the result's: a mean over the ranks of what they all hold is right, but not to the last bit. The solutions
 * stay below a quarter of it over seeds (grader/tests/margins.sh), wrong answers above ten times it. */
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
    if (exact->check == METRICS) /* kept in double precision */
        return orders * (spread + 2 * 0x1p-53 * largest);
    return orders * (spread + 2 * unit * largest);
}

int64_t global_index(const Entry *got, int64_t local)
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

int64_t count_held(const Entry *e)
{
    if (e->placement_kind != SHARD)
        return shape_count(e->shape);
    if (e->placement_dim < 0 || e->placement_dim >= e->shape.rank || e->begin < 0 || e->end < e->begin ||
        e->end > e->shape.size[e->placement_dim])
        return -1;
    return shape_count(e->shape) / e->shape.size[e->placement_dim] * (e->end - e->begin);
}

/* A sentence on the cause, or none when this check has one already. */
static bool explained(Trial *t, char *why, size_t size, const Entry *got, const Entry *want, double tolerance)
{
    CheckResult *r = &t->result->check[want->check];
    snprintf(why, size, "the values do not match");
    return !(r->failed && r->explained) && r->explanations++ < EXPLANATIONS &&
           explain(t, why, size, got, want, tolerance);
}

static void fail_values(Trial *t, const Entry *got, const Entry *want, double tolerance, int64_t worst)
{
    char text[160], why[1400];
    double right = numbers_of(want)[global_index(got, worst)], is = numbers_of(got)[worst];
    bool sure = explained(t, why, sizeof why, got, want, tolerance);
    fail_by_numbers(
        t->result, (Check)want->check, t->index, sure,
        "%s\n%s on rank %d (%s): element %lld of %lld is %.7g, expected %.7g (error %.2g, allowed %.2g)", why,
        want->name, t->rank, case_text(t->c, text), (long long)worst, (long long)got->count, is, right,
        fabs(is - right), tolerance);
}

static void fail_shape(Trial *t, const Entry *got, const Entry *want)
{
    char a[64], b[64], text[160], why[1400];
    bool sure = explained(t, why, sizeof why, got, want, 0);
    fail_by_numbers(t->result, (Check)want->check, t->index, sure,
                    "%s\n%s on rank %d (%s): the shape is %s, expected %s", why, want->name, t->rank,
                    case_text(t->c, text),
                    got->count ? shape_text(got->shape, a) : "that of nothing: there is no such tensor",
                    shape_text(want->shape, b));
}

/* The largest error of all, in units of what is allowed: solutions stay well below 1, wrong answers well
 * above. */
static void note_margin(Trial *t, const Entry *want, double error, double tolerance)
{
    double *margin = &t->result->check[want->check].margin;
    double ratio = error == 0 ? 0 : tolerance > 0 ? error / tolerance : INFINITY;
    if (!(ratio <= *margin))
        *margin = ratio;
}

void compare_values(Trial *t, const Entry *got, const Entry *want)
{
    if (!shape_equal(got->shape, want->shape) || got->count != count_held(got)) {
        fail_shape(t, got, want);
        return;
    }
    double tolerance = tolerance_of(&t->expected, want), largest = -1;
    int64_t worst = 0;
    for (int64_t i = 0; i < got->count; i++) {
        double error = fabs(numbers_of(got)[i] - numbers_of(want)[global_index(got, i)]);
        if (isnan(error))
            error = INFINITY;
        if (error > largest) {
            largest = error;
            worst = i;
        }
    }
    note_margin(t, want, fmax(largest, 0), tolerance);
    if (!(largest <= tolerance))
        fail_values(t, got, want, tolerance, worst);
}

/* A case that ended in its first step says nothing against what that step had shown already: a crash in the backward pass
 * keeps the points of the forward pass, whose second time was not reached. */
static bool was_shown_in_step_1(Trial *t, const Entry *want)
{
    char first[NAME_SIZE];
    size_t length = strlen(want->name);
    if (length < 6 || strncmp(want->name + length - 6, "step ", 5) != 0)
        return false;
    if (want->name[length - 1] == '1')
        t->broken_in_step_1 = true;
    memcpy(first, want->name, length + 1);
    first[length - 1] = '1';
    return t->broken_in_step_1 && entry_of_rank(t, t->rank, want->kind, first);
}

static void fail_missing(Trial *t, const Entry *want)
{
    char why[2600], text[160];
    if (was_shown_in_step_1(t, want))
        return;
    if (want->kind == PARAMETER && entry_of_rank(t, t->rank, FINISHED, "")) {
        parameter_missing(t, want);
        return;
    }
    story_of(t, why, sizeof why);
    for (int check = 0; check < CHECKS; check++)
        if (check == want->check || (check == INITIAL_VALUES && want->kind == PARAMETER))
            fail_by_ending(t, (Check)check, "%.2600s\nnot reached: %s on rank %d (%s)", why, want->name,
                           t->rank, case_text(t->c, text));
}

static void look(CheckResult *r)
{
    r->looked_at = r->looks = true;
}

static void compare_expected(Trial *t)
{
    int64_t offset = 0;
    const Entry *want;
    while ((want = next_entry(t->expected.base[0], t->expected.used[0], &offset))) {
        look(&t->result->check[want->check]);
        if (want->kind == PARAMETER)
            look(&t->result->check[INITIAL_VALUES]);
        const Entry *got = entry_of_rank(t, t->rank, want->kind, want->name);
        if (!got)
            fail_missing(t, want);
        else if (want->kind == PARAMETER)
            compare_parameter(t, got, want);
        else if (want->kind == TRAFFIC && t->rank == 0)
            compare_traffic(t, want);
        else if (want->kind == WORK && t->rank == 0)
            compare_work(t, want);
        else if (want->kind == DEALT && t->rank == 0)
            compare_rows(t, want);
        else if (want->kind == VALUES)
            compare_values(t, got, want);
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

static void forget_suspects(Trial *t)
{
    for (int i = 0; t->suspected && i < suspect_count(); i++)
        if (t->suspected[i].base[0])
            expected_free(&t->suspected[i]);
    free(t->suspected);
    t->suspected = NULL;
}

static bool has_failed(const LabResult *result)
{
    for (int check = 0; check < CHECKS; check++)
        if (result->check[check].failed)
            return true;
    return false;
}

/* A sanitizer has spoken after the last of the numbers. */
static void fail_refused(Trial *t)
{
    char why[2600], text[160];
    int check = 0;
    bool refused = false;
    for (int rank = 0; rank < t->c->world && t->result->state == GRADED; rank++) {
        int64_t offset = t->outcome->begin[rank];
        const Entry *entry;
        while ((entry = next_entry(t->outcome->stream[rank], t->outcome->end[rank], &offset)))
            refused = refused || entry->kind == REFUSED;
    }
    if (!refused || has_failed(t->result))
        return;
    while (!lab_points(t->result->lab, (Check)check))
        check++;
    story_of(t, why, sizeof why);
    fail_by_ending(t, (Check)check, "%.2600s\nall results are there (%s)", why, case_text(t->c, text));
}

/* Every number was there, and the case did not end: the replicas made different numbers of calls, and one waits for another. */
static void fail_unfinished(Trial *t)
{
    char why[2600], text[160];
    int check = COMMUNICATION;
    bool failed = t->result->state != GRADED || t->outcome->ending == COMPLETE || replicas_of(t->c) == 1,
         finished = true;
    for (int rank = 0; rank < t->c->world; rank++)
        finished = finished && entry_of_rank(t, rank, FINISHED, "");
    if (failed || has_failed(t->result) || finished)
        return;
    while (!lab_points(t->result->lab, (Check)check))
        check = (check + 1) % CHECKS;
    story_of(t, why, sizeof why);
    fail_by_ending(
        t, (Check)check, "%s%.2600s\nall results are there, but the case does not end (%s)",
        t->c->lab == 9 ? "one replica waits for another although they have nothing to exchange here: " : "",
        why, case_text(t->c, text));
}

static void note_pattern(LabResult *result, const Case *c)
{
    for (int check = 0; check < CHECKS; check++) {
        CheckResult *r = &result->check[check];
        if (r->looks || r->fails)
            pattern_add(&r->pattern, c, r->fails);
        r->looks = r->fails = false;
    }
}

void judge_case(LabResult *result, const Case *c, int case_index, const Outcome *outcome)
{
    Trial t = {.result = result, .c = c, .index = case_index, .outcome = outcome};
    compare_calls(&t);
    for (t.rank = 0; t.rank < c->world && result->state == GRADED; t.rank++) {
        if (reached_todo(&t))
            break;
        if (t.rank == 0 || !play_of_case(c)) { /* what every rank of a layer must see is the same */
            if (t.rank > 0)
                expected_free(&t.expected);
            forget_suspects(&t);
            t.expected = expect(c, t.rank, NO_SUSPECT, ROUNDED);
        }
        t.broken_in_step_1 = false;
        look_for_more(&t); /* what was not waited for explains the numbers */
        compare_expected(&t);
    }
    fail_unfinished(&t);
    fail_refused(&t);
    look_at_split(&t);
    note_pattern(result, c);
    forget_suspects(&t);
    if (t.expected.base[0])
        expected_free(&t.expected);
}
