/* The calls of MPI of a case under judgement. */
#include <stdio.h>
#include <string.h>

#include "base/language.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/mpi/lines.h"
#include "grader/judge/diagnose/trial.h"

static bool has_finished(const Trial *t)
{
    bool finished = t->outcome->ending == COMPLETE;
    for (int rank = 0; rank < t->c->world; rank++)
        finished = finished && entry_of_rank(t, rank, FINISHED, (Label){0});
    return finished;
}

/* Labs without a check of communication have one of groups. */
static Check check_of_calls(const Trial *t)
{
    return lab_check(t->result->lab, COMMUNICATION);
}

void compare_calls(Trial *t)
{
    char text[160];
    Difference first = {0};
    t->mismatch[0] = '\0';
    if (t->outcome->calls && has_finished(t))
        first = first_error(t->outcome->calls, true);
    if (first.kind == NO_DIFFERENCE)
        return;
    difference_text(t->outcome->calls, &first, t->mismatch, sizeof t->mismatch);
    CheckResult *r = &t->result->check[check_of_calls(t)];
    bool known = r->failed && r->explained;
    fail(t->result, check_of_calls(t), t->index, "%s (%s)", t->mismatch, case_text(t->c, text));
    r->in_calls = r->in_calls || !known;
}

void append_mismatch(const Trial *t, char *text, size_t size)
{
    char difference[1000];
    Difference first = {0};
    if (t->outcome->calls)
        first = first_error(t->outcome->calls, false);
    if (first.kind == NO_DIFFERENCE)
        return;
    difference_text(t->outcome->calls, &first, difference, sizeof difference);
    append(text, size, _("\nfirst difference: %s"), difference);
}

bool calls_explain(const Trial *t, bool lines, char *text, size_t size)
{
    Difference first = {0};
    if (t->outcome->calls && has_finished(t))
        first = first_difference(t->outcome->calls, true, lines);
    if (first.kind == NO_DIFFERENCE)
        return false;
    difference_text(t->outcome->calls, &first, text, size);
    return true;
}

/* ---- what was not given back */

static void append_open_requests(const Trial *t, char *text, size_t size)
{
    const Calls *calls = t->outcome->calls;
    char one[300];
    for (int64_t i = 0; calls && i < calls->rank[t->rank].count; i++) {
        const Call *call = &calls->rank[t->rank].call[i];
        if (!call->starts || call->completed)
            continue;
        call_text(calls, call, NULL, one, sizeof one);
        append(text, size, _(", the %s"), one);
        return;
    }
}

void left_over(Trial *t, const Entry *entry)
{
    char text[160], kind[41], which[400] = "", line[64], name[sizeof entry->label.name];
    snprintf(name, sizeof name, "%.*s", (int)sizeof name - 1, entry->label.name);
    if (!strcmp(name, "request")) {
        append_open_requests(t, which, sizeof which);
        fail(
            t->result, lab_points(t->result->lab, FORWARD) ? FORWARD : GRADIENT, t->index,
            _("an exchange was started and not waited for%s%s: a result was read before the exchange was "
              "complete (rank %d, %s)"),
            t->result->lab->over_replicas ? _(", as if it were that of another of the buckets")
                                          : "",
            which, t->rank, case_text(t->c, text));
        return;
    }
    line_of(entry->address, line);
    bool memory = !strcmp(name, "block of memory");
    const double times = entry->count > 0 ? numbers_of(entry)[0] : 0;
    const char *at = line[0] ? _(" at ") : "";
    if (memory) {
        fail(
            t->result, lab_points(t->result->lab, ARITHMETIC) ? ARITHMETIC : check_of_calls(t),
            t->index,
            _("%.0f times a block of memory was taken%s%s and not freed: each pass leaves more of them "
              "behind (rank %d, %s)"),
            times, at, line, t->rank, case_text(t->c, text));
        return;
    }
    snprintf(kind, sizeof kind, "%.40s", name);
    fail(
        t->result, check_of_calls(t), t->index,
        _("%.0f times a %s was made%s%s and not freed: each pass leaves more of them behind, and MPI has "
          "only so many (rank %d, %s)"),
        times, _(kind), at, line, t->rank, case_text(t->c, text));
}
