/* Compares a result with the results and inputs of other calls of the case. */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"

static bool is_input(const Entry *entry)
{
    return entry->label.what == INPUT_OF;
}

const Entry *input_of(const Evidence *e)
{
    Label input = e->want->label;
    if (input.what != OUTPUT_OF)
        return NULL;
    input.what = INPUT_OF;
    return find_entry(e->trial->expected.all, VALUES, input);
}

/* Does the result begin with a shorter or longer result of another call, and continue correctly? */
static bool begins_with(const Evidence *e, const Entry *entry)
{
    enum { ENOUGH = 8 };
    const int64_t common = entry->count < e->count ? entry->count : e->count;
    bool right = true;
    if (entry->count == e->count || common < ENOUGH || alike_on_ranks(e->c) ||
        e->got->placement_kind == SHARD || is_input(entry))
        return false;
    for (int64_t i = 0; i < e->count; i++) {
        const double should = i < common ? numbers_of(entry)[i] : e->right[i];
        if (!(fabs(e->is[i] - should) <= 4 * e->tolerance))
            return false;
        right = right && fabs(should - e->right[i]) <= 4 * e->tolerance;
    }
    return !right;
}

static bool is_in_same_pass(const Label *a, const Label *b)
{
    return a->what == b->what && a->of == b->of && a->index == b->index && a->step == b->step &&
           a->detail == b->detail && strcmp(a->name, b->name) != 0;
}

/* Any numbers near 0 give others near 0. */
static bool is_near_0(const Entry *entry, double tolerance)
{
    for (int64_t i = 0; i < entry->count; i++)
        if (fabs(numbers_of(entry)[i]) > 16 * tolerance)
            return false;
    return true;
}

bool of_another_call(const Evidence *e)
{
    for (const Entry *entry = NULL; (entry = next_entry(e->trial->expected.all, entry));)
        if (entry->kind == VALUES && entry != e->want && entry->check == e->want->check &&
            !is_near_0(entry, e->tolerance) &&
            ((entry->count == e->want->count && gives(e, numbers_of(entry))) ||
             begins_with(e, entry))) {
            if (is_input(entry))
                return entry == input_of(e) &&
                       says(e, _("the result is x unchanged: here the layer returns without "
                                 "computing anything"));
            return is_in_same_pass(&entry->label, &e->want->label)
                       ? says(e, _("it has the numbers of another result of this call: %s"),
                              entry_text(entry))
                       : says(
                             e,
                             _("it is the result of another call (%s): results of separate calls share "
                               "storage, or are kept from one call to the next"),
                             entry_text(entry));
        }
    return false;
}

static bool has_steps(const Label *label)
{
    return label->of == A_LAYER || label->of == A_PARAMETER || label->of == A_SEQUENCE;
}

/* Is everything right in the first step, but not this tensor of a later one? Each step has its own
 * weights and inputs, so the lab then keeps something between steps, or counts calls. */
bool right_in_step_1(const Evidence *e)
{
    Trial *t = e->trial;
    const Label *label = &e->want->label;
    if (!alike_on_ranks(t->c) || !has_steps(label) || label->step == 0)
        return false;
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));)
        if (want->kind == VALUES && has_steps(&want->label) && want->label.step == 0 &&
            !is_right_on_rank(t, want))
            return false;
    if (t->result->check[INITIAL_VALUES].fails)
        return says(e, "%s",
                    _("the initial values are already wrong, so look at that check first"));
    return says(e, "%s%s",
                _("step 1 is right, but later steps are not: does the lab keep something from one "
                  "call to the next (in a static variable, or in the layer), or count its calls?"),
                label->step >= STEPS && t->c->p > 0 && t->result->lab->sizes & SIZE_P
                    ? _(" Or does an evaluation do something that belongs in training only?")
                    : "");
}
