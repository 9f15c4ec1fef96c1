/* Lab 13: checks how long a step takes in a replay, where a stage waits, and how many micro-batches
 * it holds. */
#include "grader/judge/diagnose/step_schedule.h"
#include "grader/labs/groups.h"
#include "grader/labs/stages.h"

/* ---- the passes ---------------------------------------------------------------------------------------------- */

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

static void compare_time(Trial *t, const StepSchedule *s, bool replayed)
{
    const Case *c = t->c;
    const int64_t enough = 2 * (c->micros + c->pp - 1), alone = 2 * c->micros * c->pp;
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

void compare_micro_batches(Trial *t)
{
    compare_stages(t);
    CheckResult *r = &t->result->check[SCHEDULE];
    char why[2600];
    const bool finished = ranks_have_finished(t);
    if (!lab_points(t->result->lab, SCHEDULE) || t->result->state != GRADED)
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
