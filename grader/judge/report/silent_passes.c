/* The passes of a case in which no rank made a call, which a table of calls would not show. */
#include "base/language.h"
#include "grader/judge/report/verdict.h"
#include "grader/labs/labels.h"

/* The label that RankHeader.where has during the pass whose calls this entry counts. */
static Label pass_of(const Entry *counted)
{
    Label pass = counted->label;
    pass.what = pass.what == FORWARD_OF ? FORWARD_PASS_OF : BACKWARD_PASS_OF;
    return pass;
}

/* The entry that counts the calls of rank 0's next pass, or NULL. */
static const Entry *next_pass(const Outcome *outcome, const Entry *last)
{
    while ((last = next_entry(outcome->wrote[0], last)))
        if (last->kind == TRAFFIC &&
            (last->label.what == FORWARD_OF || last->label.what == BACKWARD_OF))
            return last;
    return NULL;
}

static bool is_silent(const Outcome *outcome, const Label *label)
{
    for (int rank = 0; rank < MAX_RANKS; rank++)
        for (const Entry *e = NULL; (e = next_entry(outcome->wrote[rank], e));)
            if (e->kind == TRAFFIC && label_equal(&e->label, label) && e->count >= 2 &&
                (numbers_of(e)[0] > 0 || numbers_of(e)[1] > 0))
                return false;
    return true;
}

void silent_passes_print(FILE *out, const Outcome *outcome, const Entry **last, const Label *where)
{
    char words[LABEL_SIZE];
    const Entry *end = *last;
    Label pass = {0};
    while ((end = next_pass(outcome, end)) && where) {
        pass = pass_of(end);
        if (label_equal(&pass, where))
            break;
    }
    if (where && !end)
        return;
    for (const Entry *e = *last; (e = next_pass(outcome, e)) && !(where && e == end); *last = e) {
        pass = pass_of(e);
        if (!is_silent(outcome, &e->label))
            continue;
        fprintf(out, _("-- %s: no call"), label_text(&pass, words));
        fprintf(out, "\n");
    }
    *last = where ? end : *last;
}
