/* What came out beside what other calls of the same case give, or are given. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/language.h"
#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/labels.h"

static bool is_input(const Entry *entry)
{
    return entry->label.what == INPUT_OF;
}

static bool returned_input(const Evidence *e, const Entry *input, char *text, size_t size)
{
    Label own_input = e->want->label;
    own_input.what = INPUT_OF;
    bool own = e->want->label.what == OUTPUT_OF && label_equal(&own_input, &input->label);
    snprintf(
        text, size, "%s",
        _("what comes out is x as it went in: here the layer returns without having computed"));
    return own;
}

/* Is it what should come out, and x besides? */
bool input_added(const Evidence *e, char *text, size_t size)
{
    Label input = e->want->label;
    int64_t offset = 0;
    if (input.of != A_LAYER || input.what != OUTPUT_OF || e->got->placement_kind == SHARD)
        return false;
    input.what = INPUT_OF;
    const Expected *expected = &e->trial->expected;
    const Entry *x = find_entry(expected->base, expected->used, VALUES, input, &offset);
    if (!x || x->count != e->count)
        return false;
    for (int64_t i = 0; i < e->count; i++)
        if (!(fabs(e->is[i] - e->right[i] - numbers_of(x)[i]) <= 4 * e->tolerance))
            return false;
    snprintf(
        text, size,
        _("it is what should come out with x added to it once too often: a residual that is not asked for "
          "here"));
    return true;
}

/* Does it begin with what that call gives, of which there is less or more, and go on with what is right? */
static bool begins_with(const Evidence *e, const Entry *entry)
{
    enum { ENOUGH = 8 };
    const int64_t common = entry->count < e->count ? entry->count : e->count;
    bool right = true;
    if (entry->count == e->count || common < ENOUGH || alike_on_ranks(e->trial->c) ||
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

bool of_another_call(const Evidence *e, char *text, size_t size)
{
    char name[LABEL_SIZE];
    const Expected *expected = &e->trial->expected;
    int64_t offset = 0;
    const Entry *entry;
    while ((entry = next_entry(expected->base, expected->used, &offset)))
        if (entry->kind == VALUES && entry != e->want && entry->check == e->want->check &&
            ((entry->count == e->want->count && gives(e, numbers_of(entry))) ||
             begins_with(e, entry))) {
            if (is_input(entry))
                return returned_input(e, entry, text, size);
            snprintf(
                text, size,
                _("it is what another call gives (%s): results of separate calls share storage, or are "
                  "kept from one "
                  "call to the next"),
                label_text(&entry->label, name));
            return true;
        }
    return false;
}

/* Is this layer right wherever nothing is dropped, and wrong in both steps? */
bool dropout_differs(const Evidence *e, char *text, size_t size)
{
    const Case *c = e->trial->c;
    const Label *label = &e->want->label;
    int right = 0, wrong = 0;
    if (!alike_on_ranks(c) || !c->training || c->p == 0 || label->of != A_LAYER ||
        label->what != OUTPUT_OF)
        return false;
    const Expected *expected = &e->trial->expected;
    int64_t offset = 0;
    const Entry *want;
    while ((want = next_entry(expected->base, expected->used, &offset))) {
        if (want->kind != VALUES || want->label.of != A_LAYER || want->label.what != OUTPUT_OF ||
            want->label.index != label->index)
            continue;
        const Entry *got = entry_of_rank(e->trial, e->trial->rank, VALUES, want->label);
        bool close = got && got->count == want->count && got->placement_kind != SHARD &&
                     close_to(numbers_of(got), numbers_of(want), 1, want->count, e->tolerance);
        if (close != (want->label.step >= STEPS))
            return false;
        ++*(close ? &right : &wrong);
    }
    if (right < 2 || wrong < 2)
        return false;
    snprintf(
        text, size,
        _("the layer is right in evaluation, where nothing is dropped, and wrong in training: look at "
          "dropout. Its name, its "
          "probability and its place decide what is dropped"));
    return true;
}
