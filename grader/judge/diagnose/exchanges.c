/* The MPI calls of a case being judged. */

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"

/* The check to which errors in calls belong. For labs without a communication check, lab_check()
 * chooses another one. */
static Check check_of_calls(const Trial *t)
{
    return lab_check(t->result->lab, COMMUNICATION);
}

/* The calls of a complete case, or NULL. */
static const Calls *whole_calls(const Trial *t)
{
    return t->outcome->ending == COMPLETE && ranks_have_finished(t) ? t->outcome->calls : NULL;
}

/* The record of calls is a ring buffer, which keeps only a rank's last calls. Nothing can be said of a
 * case whose first calls are lost, so they would hide a call that costs points. */
static bool has_lost_calls(Trial *t)
{
    static const char *const sentence =
        N_("rank %d makes more MPI calls than the %d that the grader records per case (%s)");
    const Calls *calls = whole_calls(t);
    for (int rank = 0; calls && rank < calls->ranks; rank++)
        if (calls->rank[rank].first > 0) {
            fail(t, check_of_calls(t), UNEXPLAINED, _(sentence), rank, RING_CALLS, t->sizes);
            if (lab_points(t->result->lab, SCHEDULE))
                fail(t, SCHEDULE, EXPLAINED, _(sentence), rank, RING_CALLS, t->sizes);
            return true;
        }
    return false;
}

void compare_calls(Trial *t)
{
    if (has_lost_calls(t))
        return;
    const Difference first = first_error(whole_calls(t), true);
    if (difference_text(t->outcome->calls, &first, t->mismatch, sizeof t->mismatch))
        fail(t, check_of_calls(t), IN_CALLS, "%s (%s)", t->mismatch, t->sizes);
}

void append_mismatch(const Trial *t, char *text, size_t size)
{
    char difference[1000];
    const Difference first = first_error(t->outcome->calls, false);
    if (difference_text(t->outcome->calls, &first, difference, sizeof difference))
        append(text, size, _("\nfirst difference: %s"), difference);
}

/* The place in the scenario, or -1, of what a rank was doing: the first entry about the same thing, or
 * the last one for a backward pass. */
static int place_of_pass(const Trial *t, Label pass)
{
    int place = 0, found = -1;
    for (const Entry *entry = NULL; (entry = next_entry(t->expected.all, entry)); place++) {
        Label same = entry->label;
        same.what = pass.what;
        if (label_equal(&same, &pass) && (found < 0 || pass.what == BACKWARD_PASS_OF))
            found = place;
    }
    return found;
}

/* Has this rank made a call in the group of `call`, in the same pass? */
static bool calls_there(const Calls *calls, int rank, const Call *call)
{
    for (int64_t i = 0; i < calls->rank[rank].count; i++) {
        const Call *one = &calls->rank[rank].call[i];
        if (one->number && one->group == call->group && label_equal(&one->where, &call->where))
            return true;
    }
    return false;
}

/* Is this the receive of an empty message that the other rank has not sent? The send of the next one
 * has met it. */
static bool append_empty_send(const Calls *calls, const Difference *d, char *text, size_t size)
{
    char one[300];
    if (d->kind != OTHER_COUNT || d->call[1]->rule != MESSAGE || d->call[1]->received[0].count > 0)
        return false;
    const RankCalls *sender = &calls->rank[d->rank[0]];
    for (int64_t i = 0; i < sender->count; i++)
        if (sender->call[i].rule == MESSAGE && sender->call[i].to == d->rank[1] &&
            sender->call[i].sent[0].count == 0)
            return false;
    call_text(calls, d->call[1], NULL, one, sizeof one);
    append(text, size,
           _("rank %d sends no empty message to rank %d, which waits for one in the %s\n"),
           d->rank[0], d->rank[1], one);
    return true;
}

bool append_left_out(const Trial *t, char *text, size_t size)
{
    const Calls *calls = t->outcome->calls;
    const Difference d = first_error(calls, false);
    char one[300], words[LABEL_SIZE];
    if (!d.call[0] || !d.call[1])
        return false;
    if (append_empty_send(calls, &d, text, size))
        return true;
    if (!d.call[0]->number || !t->expected.all.base)
        return false;
    const int place[2] = {place_of_pass(t, d.call[0]->where), place_of_pass(t, d.call[1]->where)};
    const int behind = place[0] < place[1] ? 0 : 1;
    if (place[0] < 0 || place[1] < 0 || place[0] == place[1] ||
        calls_there(calls, d.rank[1 - behind], d.call[behind]))
        return false;
    call_text(calls, d.call[behind], NULL, one, sizeof one);
    append(text, size, _("rank %d left out the %s, which rank %d calls (%s)\n"), d.rank[1 - behind],
           one, d.rank[behind], label_text(&d.call[behind]->where, words));
    return true;
}

/* May the ranks of this collective call exchange numbers? They are a group of the mesh; in labs in which
 * tp groups have nothing to exchange with others, such a group; in a sum over the stages, these. */
static bool is_in_group(const Trial *t, int rank, const Call *call)
{
    const Lab *lab = t->result->lab;
    const int axes = lab->over_replicas || lab->over_stages ? AXES : TP + 1,
              first = is_over_stages(&call->where) ? PP : TP;
    if ((call->rule != REDUCTION && call->rule != EXCHANGE) || call->charged == 0)
        return true;
    for (int axis = first; axis < axes; axis++)
        if (call->members == ranks_of(group_members(t->c, axis, rank)))
            return true;
    return false;
}

/* Appends the rank's groups over which the lab exchanges something where this call is. */
static void append_own_groups(const Trial *t, int rank, const Call *call, char *text, size_t size)
{
    const Lab *lab = t->result->lab;
    const bool metrics = lab_points(lab, METRICS), stages = lab->over_stages && metrics;
    const int last = stages               ? PP
                     : lab->over_replicas ? DP
                                          : TP,
              first = is_over_stages(&call->where) ? PP
                      : stages                     ? TP
                                                   : last;
    const char *next = lab_points(lab, GROUPS) ? _(", but its group mesh->%s should be %s")
                                               : _(", but its group mesh->%s is %s");
    char group[32];
    for (int axis = first; axis <= last; axis++) {
        const Members its = group_members(t->c, axis, rank);
        const Call own = {.members = ranks_of(its)};
        if ((axis == DP && is_in_norm(&call->where)) || (its.count == 1 && first < last))
            continue;
        append(text, size, next, group_names[axis], group_text(&own, group));
        next = _(", and mesh->%s is %s");
    }
}

/* Does this message stay in the tp group? With stages and replicas, messages may go elsewhere. */
static bool is_to_member(const Trial *t, int rank, const Call *call)
{
    const Lab *lab = t->result->lab;
    return call->rule != MESSAGE || call->to < 0 || !lab->has_replicas || lab->over_replicas ||
           lab->over_stages || tp_group(t->c, call->to).first == tp_group(t->c, rank).first;
}

bool tell_call_beyond_group(const Trial *t, char *text, size_t size)
{
    const Lab *lab = t->result->lab;
    const Calls *calls = t->outcome->calls;
    char one[300];
    if (lab_points(lab, GROUPS) && !lab->over_stages)
        return false; /* its groups have a check of their own */
    for (int rank = 0; calls && rank < calls->ranks; rank++)
        for (int64_t i = 0; i < calls->rank[rank].count; i++) {
            const Call *call = &calls->rank[rank].call[i];
            if (!line_of(call->address)[0] ||
                (is_in_group(t, rank, call) && is_to_member(t, rank, call)))
                continue;
            call_text(calls, call, NULL, one, sizeof one);
            if (call->rule == MESSAGE) {
                append(text, size,
                       _("rank %d calls the %s, but rank %d is in another group: count ranks "
                         "within the group, and pass the group's communicator (group_comm) to MPI"),
                       rank, one, call->to);
            } else {
                append(text, size, _("rank %d calls the %s"), rank, one);
                append_own_groups(t, rank, call, text, size);
            }
            return true;
        }
    return false;
}

bool call_beyond_group(const Evidence *e)
{
    char why[900] = "";
    return tell_call_beyond_group(e->trial, why, sizeof why) && says(e, "%s", why);
}

/* Does this rank pass on what it has, after this call, in the same group and pass? */
static bool is_passed_on(const RankCalls *calls, const Call *call)
{
    for (int64_t i = call - calls->call + 1; i < calls->count; i++)
        if (calls->call[i].group == call->group && calls->call[i].rule == EXCHANGE &&
            label_equal(&calls->call[i].where, &call->where))
            return true;
    return false;
}

/* Does this call read the bytes of its numbers as another type? Those in a tensor are floats; metrics,
 * which are in none, are doubles. */
static bool misreads(const Evidence *e, const Call *call)
{
    const int32_t basic = call->sent[0].basic;
    Label result = call->where;
    result.what = e->want->label.what;
    if (!basic || call->of_tensor)
        return basic && basic != BASIC(FLOATING, sizeof(float));
    return e->want->check == METRICS && label_equal(&result, &e->want->label) &&
           (basic < BASIC(FLOATING, sizeof(double)) || basic >= BASIC(FLOATING + 1, 0));
}

bool reduced_otherwise(const Evidence *e)
{
    const Lab *lab = e->trial->result->lab;
    const Calls *calls = e->trial->outcome->calls;
    char one[300];
    for (int rank = 0; calls && rank < calls->ranks; rank++)
        for (int64_t i = 0; i < calls->rank[rank].count; i++) {
            const Call *call = &calls->rank[rank].call[i];
            if (call->rule != REDUCTION || !line_of(call->address)[0])
                continue;
            call_text(calls, call, NULL, one, sizeof one);
            if (call->reduction != SUM_OF && !lab->takes_maxima)
                return says(e, _("rank %d calls the %s, but what the ranks have must be added up"),
                            rank, one);
            if (misreads(e, call))
                return says(e, _("rank %d calls the %s, but %s"), rank, one,
                            call->of_tensor ? _("a tensor holds floats (MPI_FLOAT)")
                                            : _("these numbers are doubles (MPI_DOUBLE)"));
            if (!strcmp(call->name, "scan") && !is_passed_on(&calls->rank[rank], call))
                return says(e,
                            _("rank %d calls the %s. MPI_Scan gives a rank the sum over the ranks "
                              "up to it: use MPI_Allreduce"),
                            rank, one);
            if (call->root != NOBODY && !is_passed_on(&calls->rank[rank], call))
                return says(
                    e,
                    _("rank %d calls the %s: only rank %d gets the result, and all ranks need it"),
                    rank, one, call->root);
        }
    return false;
}

static bool is_other(int32_t rank, int self)
{
    return rank != NOBODY && rank != self;
}

/* Does a rank stay in this call until others have done their part? */
static bool waits(const Call *call, int rank)
{
    if (call->rule == LOCAL)
        return !strcmp(call->name, "wait");
    return !call->starts &&
           (call->rule == MESSAGE ? is_other(call->to, rank) || is_other(call->from, rank)
                                  : (call->members & ~((uint64_t)1 << rank)) != 0);
}

/* Does the function that must return at once wait for what it has started itself? Then it waits even for
 * the last one there, and not only for the one before. */
static bool waits_for_its_own(const RankCalls *calls)
{
    int64_t last = calls->count - 1;
    while (last >= 0 && !(calls->call[last].at_once && calls->call[last].starts))
        last--;
    const int64_t by = last < 0 ? -1 : calls->call[last].waited_by - calls->first;
    return by >= 0 && by < calls->count && calls->call[by].at_once;
}

/* The first call that waits in the function that must return at once, or NULL. */
static const Call *wait_in_start(const RankCalls *calls, int rank, const AtOnce *start)
{
    const bool any = !start->after_earlier || waits_for_its_own(calls);
    for (int64_t i = 0; i < calls->count; i++) {
        const Call *call = &calls->call[i];
        if (call->at_once && waits(call, rank) && (any || call->rule != LOCAL))
            return call;
    }
    return NULL;
}

void compare_overlap(Trial *t)
{
    const Calls *calls = whole_calls(t);
    const AtOnce *start = &t->result->lab->at_once;
    const bool has_others = t->c->pp > 1 || replicas_of(t->c) > 1;
    for (int rank = 0; calls && rank < calls->ranks && start->function && has_others; rank++) {
        const Call *call = wait_in_start(&calls->rank[rank], rank, start);
        if (!call)
            continue;
        const char *line = line_of(call->inner);
        fail(t, lab_points(t->result->lab, SCHEDULE) ? SCHEDULE : COMMUNICATION, IN_CALLS,
             _("%s waits%s%s, so this rank does nothing until others have done their part: only "
               "start the exchange there (%s), and wait in %s (rank %d, %s)"),
             start->function, line[0] ? _(" at ") : "", line, start->starts, start->waits, rank,
             t->sizes);
        return;
    }
}

bool calls_explain(const Trial *t, bool lines, char *text, size_t size)
{
    const Difference first = first_difference(whole_calls(t), true, lines);
    return difference_text(t->outcome->calls, &first, text, size);
}

/* ---- what was not freed */

/* Writes "an exchange was started and not waited for, the start of send to rank 1 ...". `open` is
 * NULL if the record no longer has the call. */
static void request_text(const Trial *t, const Call *open, char *text, size_t size)
{
    char which[400] = "", one[300];
    if (open) {
        call_text(t->outcome->calls, open, NULL, one, sizeof one);
        append(which, sizeof which, _(", the %s"), one);
    }
    const bool sends = open && open->rule == MESSAGE && open->from == NOBODY;
    if (open && open->completed) {
        snprintf(text, size,
                 _("the %s was not complete when the function returned: wait for it there"), one);
        return;
    }
    snprintf(text, size,
             sends ? _("an exchange was started and not waited for%s%s: what it sends may change "
                       "before it has left")
                   : _("an exchange was started and not waited for%s%s: a result was read before "
                       "the exchange was complete"),
             lab_points(t->result->lab, GRADIENT)
                 ? _(" (each bucket has its own exchange and needs its own wait)")
                 : "",
             which);
}

/* Has the function that started this exchange returned without waiting for it? In labs with
 * replicas or stages, another function may wait for it. */
static bool was_left_open(const Trial *t, const Call *call, int rank)
{
    const Calls *calls = t->outcome->calls;
    const Call *in = call_of_rank(calls, rank);
    if (!call->starts || (call->completed && !call->late))
        return false;
    return calls->rank[rank].left ||
           (in && !label_equal(&call->where, &in->where) && !t->result->lab->over_replicas &&
            !t->result->lab->over_stages);
}

bool open_request_text(const Trial *t, char *text, size_t size)
{
    const Calls *calls = t->outcome->calls;
    for (int rank = 0; calls && rank < calls->ranks; rank++)
        for (int64_t i = 0; i < calls->rank[rank].count; i++)
            if (was_left_open(t, &calls->rank[rank].call[i], rank)) {
                request_text(t, &calls->rank[rank].call[i], text, size);
                append(text, size, _(" (rank %d)"), rank);
                return true;
            }
    return false;
}

/* The check of the numbers that the open exchange should have brought. */
static Check check_of_request(const Trial *t, const Call *open)
{
    const Lab *lab = t->result->lab;
    const bool backward = open && open->where.what == BACKWARD_PASS_OF;
    if (backward && lab_points(lab, INPUT_GRADIENT))
        return INPUT_GRADIENT;
    return lab_points(lab, FORWARD)    ? FORWARD
           : lab_points(lab, GRADIENT) ? GRADIENT
                                       : lab_check(lab, RING_SUM);
}

static void fail_request(Trial *t, const Call *open)
{
    char text[900];
    request_text(t, open, text, sizeof text);
    fail(t, check_of_request(t, open), EXPLAINED, _("%s (rank %d, %s)"), text, t->rank, t->sizes);
}

/* Fails the checks of all exchanges that this rank started and did not wait for. */
static void fail_requests(Trial *t)
{
    const Calls *calls = t->outcome->calls;
    bool found = false;
    for (int64_t i = 0; calls && i < calls->rank[t->rank].count; i++) {
        const Call *call = &calls->rank[t->rank].call[i];
        if (!call->starts || (call->completed && !call->late))
            continue;
        fail_request(t, call);
        found = true;
    }
    if (!found)
        fail_request(t, NULL);
}

void left_over(Trial *t, const Entry *entry)
{
    char name[41];
    snprintf(name, sizeof name, "%.40s", entry->label.name);
    if (!strcmp(name, "request")) {
        fail_requests(t);
        return;
    }
    const char *line = line_of(entry->address);
    const double times = entry->count > 0 ? numbers_of(entry)[0] : 0;
    const char *at = line[0] ? _(" at ") : "";
    if (!strcmp(name, "block of memory"))
        fail(t, lab_points(t->result->lab, ARITHMETIC) ? ARITHMETIC : check_of_calls(t), EXPLAINED,
             _("memory is allocated%s%s and never freed: each call leaks more (rank %d, %s)"), at,
             line, t->rank, t->sizes);
    else
        fail(t, check_of_calls(t), EXPLAINED,
             _("a %s was created %.0f times%s%s and never freed: each pass leaks more of them, and "
               "MPI has only a limited number (rank %d, %s)"),
             _(name), times, at, line, t->rank, t->sizes);
}

bool have_sent_enough(const Trial *t, Label call)
{
    const Entry *want = find_entry(t->expected.all, TRAFFIC, call);
    double sent = 0;
    for (int rank = 0; want && rank < t->c->world; rank++) {
        const Entry *got = entry_of_rank(t, rank, TRAFFIC, call);
        sent += got && got->count == TRAFFIC_NUMBERS ? numbers_of(got)[SENT] : 0;
    }
    return sent > 0 && sent >= numbers_of(want)[0] - 0.5;
}
