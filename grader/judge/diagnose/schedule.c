/* Lab 13: checks how long a step takes in a replay, where a stage waits, and how many micro-batches
 * it holds. */
#include "grader/judge/mpi/schedule.h"

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/grid.h"
#include "grader/labs/stages.h"

/* ---- the passes ---------------------------------------------------------------------------------------------- */

/* Appends the entry if it is a valid pass of this step: a rank may write nonsense. */
static void add_pass(StepSchedule *s, int rank, const Entry *entry, int step)
{
    if (entry->kind != PASS || entry->count != PASS_NUMBERS || entry->label.of != THE_MODEL ||
        entry->label.step != step || s->count[rank] == MOST_PASSES)
        return;
    s->pass[rank][s->count[rank]++] = (Pass){.micro = entry->label.index,
                                             .backward = entry->label.what == BACKWARD_PASS_OF,
                                             .calls = (int64_t)numbers_of(entry)[CALLS_BEFORE],
                                             .multiplied = (int64_t)numbers_of(entry)[MULTIPLIED],
                                             .begin = NO_TIME,
                                             .end = NO_TIME};
}

bool schedule_of_step(const Case *c, const Outcome *outcome, int step, const Pace *pace,
                      StepSchedule *s)
{
    const Label where = work_of_stages(step);
    *s = (StepSchedule){.ranks = c->world, .pace = pace ? *pace : (Pace){0}};
    for (int rank = 0; rank < c->world; rank++)
        for (const Entry *entry = NULL; (entry = next_entry(outcome->wrote[rank], entry));)
            add_pass(s, rank, entry, step);
    return outcome->calls && schedule_replay(outcome->calls, &where, s);
}

/* The index of a pass among its rank's passes, or -1. */
static int place_of(const StepSchedule *s, int rank, int micro, bool backward)
{
    for (int i = 0; i < s->count[rank]; i++)
        if (s->pass[rank][i].micro == micro && s->pass[rank][i].backward == backward)
            return i;
    return -1;
}

/* Reports a pass that a rank left out of a step that it completed. */
static bool tell_left_out(Trial *t, const StepSchedule *s, int step)
{
    const int micros = t->c->micros;
    char why[400];
    for (int rank = 0; rank < t->c->world; rank++) {
        int i = 0;
        while (i < 2 * micros && place_of(s, rank, i % micros, i >= micros) >= 0)
            i++;
        if (i == 2 * micros || !entry_of_rank(t, rank, WORK, work_of_stages(step)))
            continue;
        const bool backward = i >= micros;
        snprintf(why, sizeof why,
                 backward ? _("%s: stage %d has not run micro-batch %d backward (%s)")
                          : _("%s: stage %d has not run micro-batch %d forward (%s)"),
                 schedule_name(t->c), stage_of_rank(t->c, rank), i % micros, t->sizes);
        for (int check = backward ? INPUT_GRADIENT : FORWARD; check < CHECKS; check++)
            if (lab_points(t->result->lab, (Check)check) &&
                (check != INPUT_GRADIENT || t->c->pp > 1) &&
                (check != COMMUNICATION || !ranks_have_finished(t)))
                fail(t, (Check)check, EXPLAINED, "%s", why);
        return true;
    }
    return false;
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

/* The most micro-batches that are between their two passes at once. Sets *beyond to the first pass
 * that makes them more than `enough`, or to NULL. */
static int most_alive(const StepSchedule *s, int rank, int enough, const Pass **beyond)
{
    int alive = 0, most = 0;
    *beyond = NULL;
    for (int i = 0; i < s->count[rank]; i++) {
        alive += s->pass[rank][i].backward ? -1 : 1;
        most = alive > most ? alive : most;
        if (alive > enough && !*beyond)
            *beyond = &s->pass[rank][i];
    }
    return most;
}

/* The micro-batch that has waited longest for its backward pass when this pass begins. */
static int oldest_alive(const StepSchedule *s, int rank, const Pass *before)
{
    for (const Pass *pass = s->pass[rank]; pass < before; pass++) {
        const int back = place_of(s, rank, pass->micro, true);
        if (!pass->backward && (back < 0 || &s->pass[rank][back] > before))
            return pass->micro;
    }
    return 0;
}

static void compare_alive(Trial *t, const StepSchedule *s)
{
    const Case *c = t->c;
    for (int rank = 0; rank < c->world && c->kind == BY_ONE_F_ONE_B; rank++) {
        const Pass *beyond;
        char minus[24] = "";
        const int stage = stage_of_rank(c, rank),
                  enough = c->micros < c->pp - stage ? c->micros : c->pp - stage,
                  most = most_alive(s, rank, enough, &beyond);
        if (!beyond)
            continue;
        if (stage > 0)
            snprintf(minus, sizeof minus, " - %d", stage);
        fail(t, ARITHMETIC, EXPLAINED,
             _("%s: stage %d holds the activations of up to %d micro-batches at once, but min(m, "
               "p%s) = %d would do: before it runs micro-batch %d forward, it can run micro-batch "
               "%d backward (%s)"),
             schedule_name(c), stage, most, minus, enough, beyond->micro,
             oldest_alive(s, rank, beyond), t->sizes);
        return;
    }
}

/* ---- time ---------------------------------------------------------------------------------------------------- */

/* The rank's next forward pass after pass i, or NULL. On the first stage, such a pass needs nothing
 * from another stage. */
static const Pass *could_run(const StepSchedule *s, int rank, int i)
{
    for (int k = i + 1; k < s->count[rank]; k++)
        if (!s->pass[rank][k].backward)
            return &s->pass[rank][k];
    return NULL;
}

/* The first unnecessary wait: the first stage need not wait while it has a forward pass left. If no
 * wait is unnecessary, the longest wait of all stages. */
static const Pass *worst_wait(const Trial *t, const StepSchedule *s, int *of_rank,
                              const Pass **instead)
{
    const Pass *worst = NULL;
    *instead = NULL;
    for (int i = 0; i < s->count[0]; i++)
        if (s->pass[0][i].waited > 0 && (*instead = could_run(s, 0, i))) {
            *of_rank = 0;
            return &s->pass[0][i];
        }
    for (int rank = 0; rank < t->c->world; rank++)
        for (int i = 1; i < s->count[rank]; i++)
            if (!worst || s->pass[rank][i].waited > worst->waited) {
                worst = &s->pass[rank][i];
                *of_rank = rank;
            }
    return worst;
}

static void tell_too_long(Trial *t, const StepSchedule *s, int64_t enough)
{
    int rank = 0;
    const Pass *instead, *pass = worst_wait(t, s, &rank, &instead);
    char idle[60], meanwhile[120] = "";
    const long long waited = pass ? (long long)pass->waited : 0;
    const char *line = pass && pass->waited_in ? line_of(pass->waited_in->address) : "";
    if (instead && pass && pass->backward)
        snprintf(meanwhile, sizeof meanwhile, _(", while it could run micro-batch %d forward"),
                 instead->micro);
    snprintf(idle, sizeof idle, waited == 1 ? _("for %lld slot") : _("for %lld slots"), waited);
    fail(t, SCHEDULE, EXPLAINED,
         pass && pass->backward
             ? _("%s takes %lld slots (one pass of one micro-batch each), but 2 (m + p - 1) = "
                 "%lld are enough: stage %d is idle %s before it runs micro-batch %d "
                 "backward%s%s%s (%s)")
             : _("%s takes %lld slots (one pass of one micro-batch each), but 2 (m + p - 1) = "
                 "%lld are enough: stage %d is idle %s before it runs micro-batch %d "
                 "forward%s%s%s (%s)"),
         schedule_name(t->c), (long long)s->length, (long long)enough, stage_of_rank(t->c, rank),
         idle, pass ? pass->micro : 0, line[0] ? _(", at ") : "", line, meanwhile, t->sizes);
}

/* The case ran to completion all the same, because MPI buffered the messages. */
void tell_stuck(Trial *t, const StepSchedule *s, const char *function)
{
    char waits[2][300] = {"", ""};
    int told = 0;
    for (int rank = 0; rank < t->c->world && told < 2; rank++)
        if (s->stuck[rank]) {
            char call[256];
            call_text(t->outcome->calls, s->stuck[rank], NULL, call, sizeof call);
            snprintf(waits[told++], sizeof *waits, _("rank %d waits in %s"), rank, call);
        }
    fail(
        t, SCHEDULE, IN_CALLS,
        _("%s completes only because MPI buffers these small messages; with larger ones, ranks would wait for ever: %s%s%s (%s)"),
        function, waits[0], told > 1 ? _("; ") : "", waits[1], t->sizes);
}

/* The grader's record of calls is a ring buffer: it keeps only a rank's last calls. */
bool has_lost_calls(Trial *t)
{
    for (int rank = 0; rank < t->c->world; rank++)
        if (t->outcome->calls->rank[rank].first > 0) {
            fail(
                t, SCHEDULE, EXPLAINED,
                _("rank %d makes more MPI calls than the %d that the grader records per case (%s)"),
                rank, RING_CALLS, t->sizes);
            return true;
        }
    return false;
}

static void compare_time(Trial *t, const StepSchedule *s, bool replayed)
{
    const Case *c = t->c;
    const int64_t enough = 2 * (c->micros + c->pp - 1), alone = 2 * c->micros * c->pp;
    if (has_lost_calls(t))
        return;
    if (!replayed) {
        tell_stuck(t, s, schedule_name(c));
        return;
    }
    if (s->length > enough)
        tell_too_long(t, s, enough);
    if (enough < alone) {
        t->result->overlaps = t->result->overlaps || s->length < alone;
        t->result->serial = t->result->serial || s->length >= alone;
    }
}

void compare_schedule(Trial *t)
{
    CheckResult *r = &t->result->check[SCHEDULE];
    char why[2600];
    const bool finished = ranks_have_finished(t);
    if (!lab_points(t->result->lab, SCHEDULE) || !t->result->lab->over_stages ||
        t->result->state != GRADED)
        return;
    r->looked_at = r->looks = true;
    for (int step = 0; step < STEPS; step++) {
        StepSchedule s;
        const bool replayed = schedule_of_step(t->c, t->outcome, step, NULL, &s);
        if (tell_left_out(t, &s, step))
            return;
        if (!finished)
            continue;
        compare_alive(t, &s);
        compare_time(t, &s, replayed);
    }
    r->to_do = r->to_do || (t->todo && !finished);
    if (finished || t->todo)
        return;
    ending_text(t, why, sizeof why);
    fail(t, SCHEDULE, BY_ENDING, _("%.2600s\nnot reached: the end of the case (%s)"), why,
         t->sizes);
}

/* ---- why numbers are wrong ----------------------------------------------------------------------------------- */

/* A rank's k-th pass in this direction, or NULL. */
static const Pass *pass_in_direction(const StepSchedule *s, int rank, bool backward, int k)
{
    for (int i = 0; i < s->count[rank]; i++)
        if (s->pass[rank][i].backward == backward && k-- == 0)
            return &s->pass[rank][i];
    return NULL;
}

/* Does a stage run micro-batches in a different order from its neighbour? Messages between two
 * stages arrive in the order in which they were sent. */
bool micros_in_other_order(const Evidence *e)
{
    const Case *c = e->c;
    const int width = c->world / c->pp;
    const bool backward = e->want->check != FORWARD;
    StepSchedule s;
    if (!c->micros || e->want->label.step >= STEPS)
        return false;
    schedule_of_step(c, e->trial->outcome, e->want->label.step, NULL, &s);
    for (int rank = 0; rank + width < c->world; rank++)
        for (int k = 0; k < c->micros; k++) {
            const Pass *mine = pass_in_direction(&s, rank, backward, k),
                       *next = pass_in_direction(&s, rank + width, backward, k);
            if (!mine || !next || mine->micro == next->micro)
                continue;
            return says(
                e,
                backward ? _("stage %d runs micro-batch %d backward where stage %d runs "
                             "micro-batch %d: messages arrive in the order in which they are sent, "
                             "so the earlier stage gets the gradient of another micro-batch")
                         : _("stage %d runs micro-batch %d forward where stage %d runs micro-batch "
                             "%d: messages arrive in the order in which they are sent, so the "
                             "later stage gets the input of another micro-batch"),
                stage_of_rank(c, rank), mine->micro, stage_of_rank(c, rank + width), next->micro);
        }
    return false;
}
