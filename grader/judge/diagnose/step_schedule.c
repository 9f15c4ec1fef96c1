/* Replays the calls of a step, and reports what keeps the judge from replaying them. */
#include "grader/judge/diagnose/step_schedule.h"

#include "grader/labs/stages.h"

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
        _("%s completes only because MPI buffers these small messages; with larger ones, ranks would wait forever: %s%s%s (%s)"),
        function, waits[0], told > 1 ? _("; ") : "", waits[1], t->sizes);
}
