/* The schedule of a step of a pipeline: a row a stage, a column a slot, as the papers draw it. */
#include "grader/judge/mpi/schedule.h"

#include "base/language.h"
#include "grader/judge/diagnose/trial.h"
#include "grader/judge/report/verdict.h"

enum { COLUMNS = 80, INDENT = 2 };

/* What a rank does in a slot: "F3 ", "B0 ", or a point where it is idle. */
static void print_slot(FILE *out, const StepSchedule *s, int rank, int64_t slot, int width)
{
    for (int i = 0; i < s->count[rank]; i++)
        if (s->pass[rank][i].slot == slot) {
            fprintf(out, " %c%-*d", s->pass[rank][i].backward ? 'B' : 'F', width - 2,
                    s->pass[rank][i].micro);
            return;
        }
    fprintf(out, " %-*s", width - 1, ".");
}

void schedule_print(FILE *out, const Case *c, const Outcome *outcome)
{
    StepSchedule s;
    char stage[32];
    const int ranks_of_stage = c->world / c->pp, width = c->micros > 10 ? 4 : 3;
    if (!lab_of(c->lab)->over_stages || !outcome->calls)
        return;
    schedule_of_step(c, outcome, 0, &s);
    snprintf(stage, sizeof stage, _("stage %d"), c->pp - 1);
    const int64_t fit = (COLUMNS - INDENT - characters_of(stage)) / width;
    fprintf(out, "%s",
            s.length ? _("\nstep 1 by the clock of the schedule, a pass in each slot (F forward, B "
                         "backward, . idle):\n")
                     : "");
    for (int64_t first = 0; first < s.length; first += fit)
        for (int i = 0; i < c->pp; i++) {
            fprintf(out, "%*s", INDENT, "");
            fprintf(out, _("stage %d"), i);
            for (int64_t slot = first; slot < first + fit && slot < s.length; slot++)
                print_slot(out, &s, i * ranks_of_stage, slot, width);
            fprintf(out, "\n");
        }
    if (s.length)
        fprintf(out, _("  %lld slots; the first stage is idle in %lld of them\n"),
                (long long)s.length, (long long)idle_slots(&s, 0));
}
