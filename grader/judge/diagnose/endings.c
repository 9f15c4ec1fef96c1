/* How a case ended, when not by its last line. */
#include <stdio.h>
#include <string.h>

#include "base/language.h"
#include "grader/judge/mpi/lines.h"
#include "grader/judge/diagnose/trial.h"

/* The first word that refused its arguments, on any rank: that the others wait for this rank is what follows.
 */
bool refusal_text(const Case *c, const Outcome *outcome, char *text, size_t size)
{
    for (int rank = 0; rank < c->world; rank++) {
        int64_t offset = outcome->begin[rank];
        const Entry *entry;
        while ((entry = next_entry(outcome->stream[rank], outcome->end[rank], &offset))) {
            if (entry->kind != REFUSED ||
                entry->count * (int64_t)sizeof(double) < (int64_t)sizeof(Problem))
                continue;
            char line[64];
            const Problem *problem = (const Problem *)numbers_of(entry);
            line_of(entry->address, line);
            snprintf(text, size, _("%.*s%s%s (rank %d)\n%s%.*s"), (int)sizeof problem->what - 1,
                     problem->what, line[0] ? _(", at ") : "", line, rank, _("HINT: "),
                     (int)sizeof problem->hint - 1, problem->hint);
            return true;
        }
    }
    return false;
}

void ending_text(const Trial *t, char *text, size_t size)
{
    static const char *const endings[] = {[COMPLETE] = N_("the case did not come to its end"),
                                          [CRASHED] = N_("the program crashed"),
                                          [HUNG] = N_("the ranks wait for each other for ever"),
                                          [LOOPED] = N_("a rank computes for ever"),
                                          [STOPPED] = N_("the program was stopped"),
                                          [NOT_RUN] = N_("the case was not run")};
    char waits[64];
    snprintf(waits, sizeof waits, _("waits in %s"), "split");
    bool some_stay_away = t->result->lab->has_replicas && strstr(t->outcome->diagnosis, waits);
    if (some_stay_away)
        snprintf(
            text, size,
            _("some ranks did not join the creation of the groups, which concerns everybody; the ranks "
              "wait for each other for ever: %s"),
            t->outcome->diagnosis);
    else if (refusal_text(t->c, t->outcome, text, size))
        append_mismatch(t, text, size);
    else
        snprintf(text, size, "%s%s%s", _(endings[t->outcome->ending]),
                 t->outcome->diagnosis[0] ? _(": ") : "", t->outcome->diagnosis);
}
