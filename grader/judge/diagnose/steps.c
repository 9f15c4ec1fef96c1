/* Is only what comes after the first step wrong? */
#include <stdio.h>

#include "base/language.h"
#include "grader/judge/diagnose/evidence.h"

static bool has_steps(const Label *label)
{
    return label->of == A_LAYER || label->of == A_PARAMETER;
}

/* Each step has weights and inputs of its own: what was right once and then no more is kept, or counted. */
bool right_in_step_1(const Evidence *e, char *text, size_t size)
{
    Trial *t = e->trial;
    const Label *label = &e->want->label;
    int64_t offset = 0;
    const Entry *want;
    if (!alike_on_ranks(t->c) || !has_steps(label) || label->step == 0)
        return false;
    while ((want = next_entry(t->expected.base, t->expected.used, &offset)))
        if (want->kind == VALUES && has_steps(&want->label) && want->label.step == 0 &&
            !is_right_on_rank(t, want))
            return false;
    snprintf(
        text, size, "%s%s",
        _("all of step 1 is right, and this, which comes later, is not: is something kept from one call to "
          "the next (in a static variable, or in the layer), or are calls counted?"),
        label->step >= STEPS && t->c->p > 0 && t->result->lab->sizes & SIZE_P
            ? _(" Or is something done in an evaluation that belongs into training only?")
            : "");
    return true;
}
