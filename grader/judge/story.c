/* How a case ended, when not by its last line. */
#include <stdio.h>
#include <string.h>

#include "grader/judge/lines.h"
#include "grader/judge/trial.h"

/* The first word that refused its arguments, on any rank: that the others wait for this rank is what follows.
 */
static bool refusal(const Trial *t, char *text, size_t size)
{
    for (int rank = 0; rank < t->c->world; rank++) {
        int64_t offset = t->outcome->begin[rank];
        const Entry *entry;
        while ((entry = next_entry(t->outcome->stream[rank], t->outcome->end[rank], &offset))) {
            if (entry->kind != REFUSED || entry->count * (int64_t)sizeof(double) < (int64_t)sizeof(Problem))
                continue;
            char line[64];
            const Problem *problem = (const Problem *)numbers_of(entry);
            line_of(entry->address, line);
            snprintf(text, size, "%.*s%s%s (rank %d)\nHINT: %.*s", (int)sizeof problem->what - 1,
                     problem->what, line[0] ? ", at " : "", line, rank, (int)sizeof problem->hint - 1,
                     problem->hint);
            return true;
        }
    }
    return false;
}

void story_of(const Trial *t, char *text, size_t size)
{
    static const char *const endings[] = {[COMPLETE] = "the case did not come to its end",
                                          [CRASHED] = "the program crashed",
                                          [HUNG] = "the ranks wait for each other for ever",
                                          [LOOPED] = "a rank computes for ever",
                                          [STOPPED] = "the program was stopped",
                                          [NOT_RUN] = "the case was not run"};
    bool some_stay_away = t->c->lab >= 8 && strstr(t->outcome->story, "waits in split");
    if (some_stay_away)
        snprintf(text, size,
                 "some ranks did not join the creation of the groups, which concerns everybody; the ranks "
                 "wait for each other for ever: %s",
                 t->outcome->story);
    else if (refusal(t, text, size))
        append_mismatch(t, text, size);
    else
        snprintf(text, size, "%s%s%s", endings[t->outcome->ending], t->outcome->story[0] ? ": " : "",
                 t->outcome->story);
}
