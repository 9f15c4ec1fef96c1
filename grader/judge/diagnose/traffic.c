/* Checks what the ranks send in each pass: how much, in how many calls, and whether any call exchanges
 * nothing. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/f_and_g.h"
#include "grader/labs/sequence.h"
#include "grader/labs/sharded.h"

/* A number that a rank has written, as an index among its recorded calls. */
static int64_t recorded(const RankCalls *calls, double index)
{
    const double last = (double)(calls->first + calls->count);
    return index > (double)calls->first ? (int64_t)fmin(index, last) - calls->first : 0;
}

const Call *next_in_pass(const Trial *t, const Entry *want, const Call *last)
{
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, TRAFFIC, want->label);
        const RankCalls *calls = &t->outcome->calls->rank[rank];
        if (!got || got->count != TRAFFIC_NUMBERS)
            continue;
        int64_t i = recorded(calls, numbers_of(got)[FIRST_CALL]);
        const int64_t end = recorded(calls, numbers_of(got)[END_CALL]);
        if (last && (last < calls->call || last >= calls->call + calls->count))
            continue;
        i = last ? last - calls->call + 1 : i;
        last = NULL;
        if (i < end)
            return &calls->call[i];
    }
    return NULL;
}

const Call *call_in_pass(const Trial *t, const Entry *want,
                         bool (*is_such)(const Trial *t, const Call *call))
{
    const Call *call = NULL;
    while ((call = next_in_pass(t, want, call)) && !is_such(t, call))
        ;
    return call;
}

static bool is_among_ranks(const Trial *t, const Call *call)
{
    return call->number > 0 && __builtin_popcountll(call->members) > 1;
}

/* Does this pass sum a few doubles over some ranks, and nothing else? */
static bool sums_metrics(const Label *l)
{
    return l->of == METRICS_OF || l->of == METRICS_OF_STAGES ||
           (l->of == OF_SHARDS && l->index == SHARDED_SQUARES);
}

enum { A_FEW = 16 }; /* numbers, as in the sum of a metric */

/* What this call may send on top of what suffices. Two halves of a sum, in collectives or messages,
 * pad its numbers to a multiple of the n ranks of the group: at most n - 1 zeros, of which a rank
 * sends (n - 1)/n. A message of one number is no part of a larger sum with a zero at its end. An
 * all-gather of a few numbers, which each rank then adds up, may replace a sum; it sends n/2 times
 * as much. A sum of a few numbers beside others may be over more ranks than `usual` ones, and those
 * of a norm over any: there, only the calls count. */
static double tolerated(const Trial *t, const Entry *want, const Call *call, double usual)
{
    const double n = fmax(1, __builtin_popcountll(call->members)), padding = (n - 1) * (n - 1) / n;
    const bool few = call->sent[0].count <= A_FEW,
               of_norms = t->result->lab->over_stages && lab_points(t->result->lab, METRICS);
    if (t->result->lab->over_stages && !of_norms)
        return 0; /* stages sum nothing */
    if (call->rule == MESSAGE)
        return call->charged > 1 || numbers_of(want)[0] <= A_FEW * t->c->world
                   ? fmin(call->charged, 1)
                   : 0;
    if (call->rule == EXCHANGE)
        return fmin(call->charged, few ? fmax(padding, call->charged * (1 - 2 / n)) : padding);
    if (strstr(call->name, "scatter"))
        return fmin(call->charged, padding);
    return !few || n < 2 || sums_metrics(&want->label) ? 0
           : of_norms                                  ? call->charged
                      : call->charged * fmax(0, 1 - (usual - 1) / usual * n / (n - 1));
}

/* What all ranks together may send in a pass on top of what suffices. For an f or g alone, the
 * budget determines the padding. Positions need none: tp divides them. */
static double tolerated_in_pass(const Trial *t, const Entry *want, double n, double allowed)
{
    double sum = 0;
    const double each = 2 * (n - 1) * t->c->world / n;
    double in_messages = 0;
    for (const Call *call = NULL; (call = next_in_pass(t, want, call));)
        *(call->rule == MESSAGE ? &in_messages : &sum) += tolerated(t, want, call, n);
    if (want->label.of == A_SEQUENCE && want->label.index != NORM_GRADIENTS)
        sum = 0;
    sum += fmin(in_messages, each * (n - 1) * numbers_of(want)[1]);
    if (n > 1 && want->label.of == AN_OPERATION)
        sum = fmin(sum, each * fmod(n - fmod(allowed / each, n), n));
    return allowed > 0 ? sum : 0;
}

/* Do the ranks exchange no data at all in this collective? Creating a communicator is setup, and a
 * part of a few numbers may be empty. */
static bool is_empty(const Trial *t, const Entry *want, const Call *call)
{
    double charged = 0;
    const bool is_barrier = !strcmp(call->name, "barrier"),
               may_be = call->rule == TOGETHER || numbers_of(want)[0] < A_FEW * t->c->world;
    if (!is_among_ranks(t, call) || call->charged > 0 || (may_be && !is_barrier))
        return false;
    for (const Call *other = NULL; (other = next_in_pass(t, want, other));)
        if (other->group == call->group && other->number == call->number)
            charged += other->charged;
    return charged == 0;
}

/* Fails if ranks wait for each other in a call that exchanges nothing. */
static bool waits_for_nothing(Trial *t, const Entry *want)
{
    for (const Call *call = NULL; (call = next_in_pass(t, want, call));) {
        if (!is_empty(t, want, call))
            continue;
        const char *line = line_of(call->address);
        fail(
            t, COMMUNICATION, EXPLAINED,
            numbers_of(want)[0] == 0
                ? _("%s: the ranks wait for each other in the %s%s%s, but this pass needs none (%s)")
                : _("%s: the ranks wait for each other in the %s%s%s, which exchanges no data (%s)"),
            entry_text(want), _(call->name), line[0] ? _(" at ") : "", line, t->sizes);
        return true;
    }
    return false;
}

void compare_traffic(Trial *t, const Entry *want)
{
    char why[480], cause[300];
    double sent = 0, calls = 0, made = 0, n = exchanging_ranks(t->c);
    bool by_rows = false; /* an embedding is split by rows, so the ranks may send more */
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, TRAFFIC, want->label);
        if (!got || got->count != TRAFFIC_NUMBERS)
            return; /* the end of the case gives the reason */
        sent += numbers_of(got)[SENT];
        made = fmax(made, numbers_of(got)[MADE]);
        calls = fmax(calls, numbers_of(got)[COLLECTIVES]);
        by_rows = by_rows || numbers_of(got)[SPLIT_BY_ROWS] != 0;
    }
    double usual = numbers_of(want)[1], allowed = numbers_of(want)[by_rows ? 2 : 0],
           more = tolerated_in_pass(t, want, n, allowed);
    const double rounding = 1e-3; /* charges are fractions, accumulated since the case began */
    /* A stage's embedding may be split in two ways, and one of them sends less. */
    const bool exact = !t->result->lab->over_stages || t->c->tp == 1;
    t->result->exchanges |= sent > 0;
    t->result->sent = (Bytes){true, t->result->sent.count + sizeof(float) * sent};
    t->sends_too_little = t->sends_too_little || (exact && sent < allowed - rounding);
    if (!(sent <= allowed + more + rounding)) {
        tell_more_sent(t, want, sent, calls, allowed, why, sizeof why);
        const bool enlarged = enlarged_parameter(t, cause, sizeof cause);
        fail(t, COMMUNICATION, EXPLAINED, "%s%s%s%s%s (%s)", enlarged ? cause : "",
             enlarged ? "\n" : "", entry_text(want), _(": "), why, t->sizes);
    } else if (usual == 0 && made > 0) { /* a color may say something */
        fail(t, COMMUNICATION, EXPLAINED,
             _("%s: %.0f communicators more than a few are made, but this pass needs no exchange "
               "(%s)"),
             entry_text(want), made, t->sizes);
    } else if (usual > 0 && calls > 2 * usual + 2) {
        fail(t, COMMUNICATION, EXPLAINED,
             _("%s: %.0f calls where %.0f would do: send each tensor in one piece (%s)"),
             entry_text(want), calls, usual, t->sizes);
    } else if (waits_for_nothing(t, want)) {
        return;
    } else if (want->label.of == THE_NORM && calls > usual) {
        fail(
            t, COMMUNICATION, EXPLAINED,
            _("%s: the ranks wait for each other in %.0f calls: one sum over mesh->tp and one over "
              "mesh->pp suffice (%s)"),
            entry_text(want), calls, t->sizes);
    }
}
