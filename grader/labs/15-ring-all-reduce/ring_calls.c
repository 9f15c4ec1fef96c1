/* Lab 15: checks to whom each rank sends, how much, and how many rounds that takes in a replay. */
#include "grader/labs/15-ring-all-reduce/ring_checks.h"

#include <math.h>

#include "grader/judge/diagnose/step_schedule.h"

/* One call of a part of the ring, on all ranks. */
typedef struct Exchange {
    Trial *trial;
    const char *function;
    Label where;
    int64_t count; /* numbers of x */
} Exchange;

static bool is_here(const Exchange *x, const Call *call)
{
    return label_equal(&call->where, &x->where);
}

/* The first call of a rank here, from *i on, or NULL. */
static const Call *next_call(const Exchange *x, int rank, int64_t *i)
{
    const RankCalls *mine = &x->trial->outcome->calls->rank[rank];
    while (*i < mine->count && !is_here(x, &mine->call[*i]))
        ++*i;
    return *i < mine->count ? &mine->call[(*i)++] : NULL;
}

static void call_at_line(const Exchange *x, const Call *call, char *text, size_t size)
{
    call_text(x->trial->outcome->calls, call, NULL, text, size);
}

/* ---- what is sent -------------------------------------------------------------------------------------------- */

/* Fails all checks if the lab calls a collective, because that would do all the work that earns
 * points. */
static bool uses_collective(const Exchange *x)
{
    Trial *t = x->trial;
    char one[300];
    for (int rank = 0; rank < t->c->world; rank++)
        for (int64_t i = 0;;) {
            const Call *call = next_call(x, rank, &i);
            if (!call)
                break;
            if (!call->number)
                continue;
            call_at_line(x, call, one, sizeof one);
            for (int check = 0; check < CHECKS; check++)
                if (lab_points(t->result->lab, (Check)check))
                    fail(t, (Check)check, IN_CALLS,
                         _("%s: rank %d calls the %s: in this lab, messages between two ranks "
                           "replace collectives (%s)"),
                         x->function, rank, one, t->sizes);
            return true;
        }
    return false;
}

/* What a rank has sent to its right (0) and left (1) neighbours. With only two ranks, both are the
 * same rank, which counts as the right neighbour. */
typedef struct Sent {
    int messages[2];
    int64_t numbers;
} Sent;

/* Which neighbour is rank `to`? 0: the right neighbour, 1: the left one; NOBODY if neither. */
static int side_of(const Trial *t, int rank, int to)
{
    const Members group = tp_group(t->c, rank);
    const int n = group.count, ahead = (place_in(group, to) - place_in(group, rank) + n) % n;
    const bool member = tp_group(t->c, to).first == group.first;
    return !member || ahead == 0 ? NOBODY : ahead == 1 ? 0 : ahead == n - 1 ? 1 : NOBODY;
}

static bool tell_no_neighbour(const Exchange *x, int rank, const Call *call)
{
    Trial *t = x->trial;
    const Members group = tp_group(t->c, rank);
    const int n = group.count, k = place_in(group, rank);
    char one[300];
    call_at_line(x, call, one, sizeof one);
    fail(t, COMMUNICATION, EXPLAINED,
         _("%s: rank %d calls the %s, but its neighbours in the ring are rank %d and rank %d (%s)"),
         x->function, rank, one, group.first + (k + n - 1) % n * group.stride,
         group.first + (k + 1) % n * group.stride, t->sizes);
    return false;
}

/* Fails if a message goes to a rank of another group, because the rank that waits for it may wait
 * forever. */
static void compare_receivers(const Exchange *x, Check check)
{
    Trial *t = x->trial;
    char one[300];
    for (int rank = 0; rank < t->c->world; rank++)
        for (int64_t i = 0;;) {
            const Call *call = next_call(x, rank, &i);
            if (!call)
                break;
            if (call->to < 0 || tp_group(t->c, call->to).first == tp_group(t->c, rank).first)
                continue;
            call_at_line(x, call, one, sizeof one);
            fail(t, check, IN_CALLS,
                 _("%s: rank %d calls the %s, but rank %d is in another group: count ranks within "
                   "the group, and pass group_comm(group) to MPI (%s)"),
                 x->function, rank, one, call->to, t->sizes);
            return;
        }
}

/* Counts what a rank has sent. @return false if it sent to a rank that is not its neighbour */
static bool count_sent(const Exchange *x, int rank, Sent *sent)
{
    *sent = (Sent){0};
    for (int64_t i = 0;;) {
        const Call *call = next_call(x, rank, &i);
        if (!call)
            return true;
        if (call->rule != MESSAGE || call->to < 0 || call->to == rank)
            continue;
        const int side = side_of(x->trial, rank, call->to);
        if (side == NOBODY)
            return tell_no_neighbour(x, rank, call);
        sent->messages[side]++;
        sent->numbers += (int64_t)(signature_bytes(&call->sent[0]) / sizeof(float));
    }
}

/* Does a rank send a chunk in each of n rounds? */
static bool sends_in_n_rounds(const Exchange *x, int rank)
{
    const int n = exchanging_ranks(x->trial->c);
    const int64_t chunk = (x->count + n - 1) / n;
    int messages = 0;
    double numbers = 0;
    const Call *call;
    for (int64_t i = 0; (call = next_call(x, rank, &i));)
        if (call->rule == MESSAGE && call->to >= 0) {
            messages++;
            numbers += signature_bytes(&call->sent[0]) / sizeof(float);
        }
    return messages == n && numbers > (double)((n - 1) * (chunk + (n == 2)));
}

bool tell_n_rounds(Trial *t, int part, int call, char *text, size_t size)
{
    const Exchange x = {t, ring_functions[part], ring_label(ITSELF, part, call),
                        ring_count(t->c, call)};
    const int n = exchanging_ranks(t->c);
    for (int rank = 0; t->outcome->calls && rank < t->c->world; rank++)
        if (sends_in_n_rounds(&x, rank)) {
            snprintf(text, size,
                     _("%s: rank %d sends a chunk in each of n = %d rounds, but n - 1 = %d would "
                       "do: by then, each chunk has been on every rank"),
                     x.function, rank, n, n - 1);
            return true;
        }
    return false;
}

bool tell_too_few(const Trial *t, int part, int call, char *text, size_t size)
{
    const Exchange x = {(Trial *)t, ring_functions[part], ring_label(ITSELF, part, call),
                        ring_count(t->c, call)};
    const Label ended = ring_label(FORWARD_OF, part, call);
    const int n = exchanging_ranks(t->c);
    const int64_t least = x.count - (x.count + n - 1) / n; /* without the longest chunk */
    for (int rank = 0; t->outcome->calls && rank < t->c->world; rank++) {
        int64_t numbers = 0;
        const Call *sent;
        if (t->outcome->calls->rank[rank].first > 0) /* the record has lost earlier calls */
            continue;
        for (int64_t i = 0; (sent = next_call(&x, rank, &i));)
            if (sent->rule == MESSAGE && sent->to >= 0)
                numbers += (int64_t)(signature_bytes(&sent->sent[0]) / sizeof(float));
        if (numbers >= least || !entry_of_rank(t, rank, TRAFFIC, ended))
            continue;
        append(text, size,
               _("%s: rank %d sends %lld numbers and ends the call, but the n - 1 = %d chunks that "
                 "it must send have %lld or more"),
               x.function, rank, (long long)numbers, n - 1, (long long)least);
        return true;
    }
    return false;
}

/* A ring may turn both ways, with half of the numbers each way. With two ranks, both ways are the
 * same. */
static void compare_sent(const Exchange *x, int rank)
{
    Trial *t = x->trial;
    Sent sent;
    const int n = exchanging_ranks(t->c);
    const int64_t count = x->count, chunk = (count + n - 1) / n;
    if (!count_sent(x, rank, &sent))
        return;
    const int both = n == 2 || (sent.messages[0] && sent.messages[1]),
              most = (n == 2 ? 2 : 1) * (n - 1);
    const int64_t enough = (n - 1) * (chunk + both);
    if (sent.numbers > enough && !sends_in_n_rounds(x, rank))
        fail(t, COMMUNICATION, EXPLAINED,
             _("%s: rank %d sends %lld numbers, but n - 1 chunks (here %d) of at most %lld numbers "
               "are enough: in each round a rank sends one chunk (%s)"),
             x->function, rank, (long long)sent.numbers, n - 1, (long long)chunk, t->sizes);
    for (int side = 0; side < 2; side++)
        if (sent.messages[side] > most)
            fail(t, COMMUNICATION, EXPLAINED,
                 _("%s: rank %d sends %d messages to one neighbour, but n - 1 = %d would do: one "
                   "in each round (%s)"),
                 x->function, rank, sent.messages[side], n - 1, t->sizes);
}

/* ---- how long it takes --------------------------------------------------------------------------------------- */

/* The length of the longest message. */
static double longest_message(const Exchange *x)
{
    double longest = 0;
    const Call *call;
    for (int rank = 0; rank < x->trial->c->world; rank++)
        for (int64_t i = 0; (call = next_call(x, rank, &i));)
            if (call->rule == MESSAGE)
                longest = fmax(longest, signature_bytes(&call->sent[0]) / sizeof(float));
    return longest;
}

/* The rounds that a rank spends in blocking sends while it receives nothing. *first becomes the
 * first of these sends. */
static double rounds_in_sends(const Exchange *x, int rank, double largest, const Call **first)
{
    double numbers = 0;
    bool receives = false;
    const Call *call;
    *first = NULL;
    for (int64_t i = 0; !receives && (call = next_call(x, rank, &i));) {
        receives = call->starts && call->from != NOBODY;
        if (call->rule != MESSAGE || call->starts || call->to < 0 || call->to == rank ||
            call->from != NOBODY)
            continue;
        *first = *first ? *first : call;
        numbers += signature_bytes(&call->sent[0]) / sizeof(float);
    }
    return ceil(numbers / largest);
}

/* Writes where the rank that loses the most time loses it: in blocking sends, or in a wait of more
 * than one round. Otherwise writes nothing. */
static void where_time_is_lost(const Exchange *x, const StepSchedule *s, double largest, char *text,
                               size_t size)
{
    const Call *send = NULL, *first;
    double most = 0;
    int sender = 0, worst = 0;
    char one[300];
    for (int rank = 0; rank < x->trial->c->world; rank++) {
        const double rounds = rounds_in_sends(x, rank, largest, &first);
        if (rounds > most) {
            most = rounds;
            sender = rank;
            send = first;
        }
        if (s->waited[rank] > s->waited[worst])
            worst = rank;
    }
    text[0] = '\0';
    if (send) {
        const char *line = line_of(send->address);
        append(text, size,
               _(": rank %d spends %.0f of these rounds in blocking sends%s%s, while it receives "
                 "nothing: start the send, receive, then wait"),
               sender, most, line[0] ? _(" at ") : "", line);
    } else if (s->waited_in[worst] && ceil(s->waited[worst]) > 1) {
        call_at_line(x, s->waited_in[worst], one, sizeof one);
        append(text, size, _(": rank %d spends %.0f of these rounds waiting in the %s"), worst,
               ceil(s->waited[worst]), one);
    }
}

static void tell_too_long(const Exchange *x, const StepSchedule *s, int64_t enough)
{
    Trial *t = x->trial;
    const double largest = ceil((double)x->count / (double)(enough + 1)),
                 longest = longest_message(x);
    char where[500];
    if (s->length * largest <= (double)enough * longest) {
        fail(t, SCHEDULE, EXPLAINED,
             _("%s of %lld numbers: the longest message has %.0f numbers, but a chunk has at most "
               "%.0f. A longer message makes its round longer (%s)"),
             x->function, (long long)x->count, longest, largest, t->sizes);
        return;
    }
    where_time_is_lost(x, s, largest, where, sizeof where);
    fail(t, SCHEDULE, EXPLAINED,
         _("%s of %lld numbers takes %.0f rounds of one chunk each, but n - 1 = %lld would do if "
           "all ranks send and receive at the same time%s (%s)"),
         x->function, (long long)x->count, ceil(s->length), (long long)enough, where, t->sizes);
}

/* A message with a whole chunk takes one round; one with half a chunk takes half a round. */
static void compare_rounds(const Exchange *x)
{
    Trial *t = x->trial;
    static StepSchedule s;
    const int64_t n = exchanging_ranks(t->c), enough = n - 1, largest = (x->count + n - 1) / n;
    const double chunk = (double)largest, round = 1 / (chunk * sizeof(float)),
                 rounding = 1 / chunk + 1e-6; /* two halves of an odd chunk, on two ranks */
    s = (StepSchedule){.pace = {.byte = {[NEAR] = round, [FAR] = round}, .node = MAX_RANKS}};
    if (!schedule_replay(t->outcome->calls, &x->where, &s))
        tell_stuck(t, &s, x->function);
    else if (s.length > (double)enough * (1 + rounding))
        tell_too_long(x, &s, enough);
}

/* ---- both ---------------------------------------------------------------------------------------------------- */

/* Has every rank ended this call? */
static bool has_ended(const Exchange *x)
{
    Label sent = x->where;
    sent.what = FORWARD_OF;
    for (int rank = 0; rank < x->trial->c->world; rank++)
        if (!entry_of_rank(x->trial, rank, TRAFFIC, sent))
            return false;
    return true;
}

void compare_ring(Trial *t)
{
    CheckResult *r = &t->result->check[SCHEDULE];
    char why[2600];
    if (t->result->state != GRADED)
        return;
    r->looked_at = r->looks = true;
    for (int part = 0; part < RING_PARTS; part++)
        for (int call = 0; call < RING_CALLS_OF_PART; call++) {
            const Exchange x = {t, ring_functions[part], ring_label(ITSELF, part, call),
                                ring_count(t->c, call)};
            if (!t->outcome->calls || uses_collective(&x))
                return;
            compare_receivers(&x, ring_check(part));
            if (!has_ended(&x))
                continue;
            compare_chunks(t, call);
            if (tell_n_rounds(t, part, call, why, sizeof why)) {
                fail(t, COMMUNICATION, EXPLAINED, "%s (%s)", why, t->sizes);
                fail(t, SCHEDULE, EXPLAINED, "%s (%s)", why, t->sizes);
            }
            for (int rank = 0; rank < t->c->world; rank++)
                compare_sent(&x, rank);
            compare_rounds(&x);
        }
    compare_extreme_chunks(t);
    r->to_do = r->to_do || (t->todo && !ranks_have_finished(t));
    if (ranks_have_finished(t) || t->todo)
        return;
    ending_text(t, why, sizeof why);
    fail(t, SCHEDULE, BY_ENDING, _("%.2600s\nnot reached: the end of the case (%s)"), why,
         t->sizes);
}
