/* Finds what most likely went wrong: first what the numbers prove, then a broken placement rule. */
#include <stdlib.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/f_and_g.h"

/* Can this broken rule be the cause of a wrong entry of this check? */
static bool may_harm(const Entry *note, Check check)
{
    return note->check == FORWARD || (note->check == WEIGHT_GRADIENT && check != FORWARD) ||
           check == INPUT_GRADIENT;
}

/* Is this rule about duplication (f)? */
static bool is_about_f(const Problem *problem)
{
    return strstr(problem->what, "duplication") || strstr(problem->hint, "duplication");
}

/* Writes the first broken placement rule that this rank noted and that may be the cause, with its
 * line. The numbers show that it mattered. Then writes another one if it is about f: such a rule
 * has a cause of its own, because values are the same with f and without. */
static bool noted(const Trial *t, const Entry *want, char *text, size_t size)
{
    const Entry *entry = NULL;
    const Problem *first = NULL;
    const void *address = NULL; /* of the call that broke the first one */
    int count = 0;
    text[0] = '\0';
    while (count < 2 && (entry = next_entry(t->outcome->wrote[t->rank], entry))) {
        const Problem *problem = entry->kind == NOTE && may_harm(entry, (Check)want->check) &&
                                         !follows_wrong_gradient(t, want)
                                     ? problem_of(entry)
                                     : NULL;
        if (!problem ||
            (first && (!is_about_f(problem) || entry->address == address ||
                       !strcmp(problem->what, first->what) || !strcmp(problem->hint, first->hint))))
            continue;
        append(text, size, "%s", count ? "\n" : "");
        append_problem(entry, text, size);
        first = problem;
        address = entry->address;
        count++;
    }
    return count > 0;
}

/* Is this the shape of a result of the case's layers, such as the other layer's? */
static bool is_shape_of_another(const Trial *t, const Entry *got, const Entry *want)
{
    if (want->check != FORWARD || !alike_on_ranks(t->c))
        return false;
    for (const Entry *entry = NULL; (entry = next_entry(t->expected.all, entry));)
        if (entry->kind == VALUES && entry->label.of == A_LAYER && entry->label.what == OUTPUT_OF &&
            shape_equal(entry->shape, got->shape))
            return true;
    return false;
}

static const char *joined_too_much(const Case *c, const Entry *want)
{
    bool forward = want->check == FORWARD, sum = forward ? is_operation(want, G) ||
                                                               is_operation(want, READ_TWICE) ||
                                                               is_operation(want, WEIGHT_KEPT)
                                                         : is_operation(want, F);
    if (alike_on_ranks(c))
        return _("its size is too large by a factor of the number of ranks: the joined tensors are "
                 "not shards; each is whole or one term of a sum");
    return sum ? _("its size is too large by a factor of the number of ranks: the ranks' tensors "
                   "were joined instead of summed")
               : _("its size is too large by a factor of the number of ranks: tensors that every "
                   "rank already held in full were joined");
}

/* Is a tensor of a layer too small in its first dimension, the batch, and right in the others? */
static bool lost_rows(Shape is, const Entry *want)
{
    const Shape right = want->shape;
    bool rest = want->label.of == A_LAYER && is.rank == 3 && right.rank == 3;
    for (int i = 1; i < 3; i++)
        rest = rest && is.size[i] == right.size[i];
    return rest && is.size[0] < right.size[0];
}

/* Has the scatter split along one dimension, and the gather that follows joined along another? */
static bool cut_elsewhere(const Case *c, Shape is, const Entry *want, char *text, size_t size)
{
    int cut = -1, joined = -1;
    if (!(kind_of_case(c)->facts & A_PART_OF_X) || is.rank != want->shape.rank || c->tp == 1)
        return false;
    for (int i = 0; i < is.rank; i++) {
        cut = is.size[i] * c->tp == want->shape.size[i] ? i : cut;
        joined = is.size[i] == want->shape.size[i] * c->tp ? i : joined;
    }
    if (cut < 0 || joined < 0)
        return false;
    snprintf(
        text, size,
        _("scatter_forward splits along dimension %d, but was asked for dimension %d: take the "
          "part along `dim`"),
        cut, joined);
    return true;
}

static bool wrong_size(const Trial *t, const Entry *got, const Entry *want, char *text, size_t size)
{
    int64_t is = shape_count(got->shape), right = shape_count(want->shape);
    const char *says = NULL;
    const Case *c = t->c;
    bool as_other = is_shape_of_another(t, got, want);
    if (cut_elsewhere(c, got->shape, want, text, size))
        return true;
    if (!t->result->lab->over_replicas && c->world > c->tp && is * c->tp == right * c->world)
        says = _("it also contains the pieces of other replicas: the group is the world");
    else if (got->count == 0 && want->check == INPUT_GRADIENT)
        says = _("no gradient flowed back: a group_... function gives values only; duplication, "
                 "all_reduce and all_gather are on the tape");
    else if (got->shape.rank < want->shape.rank)
        says = _("it has fewer dimensions than expected");
    else if (is == right)
        says = _("it has as many numbers as expected, but in another shape: check along which "
                 "dimension the pieces are joined");
    else if (lost_rows(got->shape, want))
        says = _("rows of the batch are missing: every rank must keep all B rows of x");
    else if (c->tp > 1 && is * c->tp == right)
        says = _("it has the shape of one rank's piece: the pieces of all ranks must be joined");
    else if (c->tp > 1 && is == right * c->tp)
        says = joined_too_much(c, want);
    else if (kind_of_case(c)->facts & A_ROW_PER_SAMPLE && want->shape.rank == 2 &&
             is == right * c->S)
        says = _("there is a result for each position: the classifier uses only the first token, "
                 "which first_token() selects");
    else if (as_other)
        says = _("it has the shape of the other layer's result: keep a layer's weights in its own "
                 "struct, not in a static variable");
    snprintf(text, size, "%s", says ? says : _("the shape is not the expected one"));
    return says != NULL;
}

static bool look_at_numbers(const Evidence *e, Finder *const finders[])
{
    while (finders && *finders && !(*finders)(e))
        finders++;
    return finders && *finders;
}

/* What the lab itself looks for, earlier and later. */
static bool own_reasons(const Evidence *e)
{
    return look_at_numbers(e, e->trial->result->lab->examine.reasons);
}
static bool more_own_reasons(const Evidence *e)
{
    return look_at_numbers(e, e->trial->result->lab->examine.more_reasons);
}

/* A proven cause takes precedence over a broken rule; a likely one is reported only if no rule was
 * broken. */
static bool explain_numbers(const Evidence *e, bool has_note, bool *proven)
{
    static Finder *const proofs[] = {own_reasons,
                                     after_wrong_gradients,
                                     input_altered,
                                     not_a_number,
                                     program_is_another,
                                     nothing_flowed_back,
                                     multiple,
                                     layer_gradient_is_scaled,
                                     added_up_over_ranks,
                                     value_is_wrong,
                                     rest_is_not_shared,
                                     right_on_first_rank,
                                     of_another_call,
                                     more_own_reasons,
                                     of_another_rank,
                                     result_was_changed,
                                     partial_match,
                                     few_wrong,
                                     scaled,
                                     step_of_wrong_gradient,
                                     NULL};
    static Finder *const signs[] = {
        step_of_wrong_gradient, after_wrong_forward, same_numbers_elsewhere,
        right_in_step_1,        nearly_right,        not_on_tape,
        ranks_differ,           first_ones_right,    NULL};
    /* For sums over ranks. They precede `proofs`, whose multiple() may name a vaguer cause. */
    static Finder *const of_sums[] = {own_reasons, made_of_contributions, more_own_reasons, NULL};
    *proven = reduced_otherwise(e) || nan_is_hidden(e) ||
              ((!alike_on_ranks(e->c) || e->trial->result->lab->examine.summand) &&
               look_at_numbers(e, of_sums)) ||
              look_at_numbers(e, proofs);
    return *proven || (!has_note && look_at_numbers(e, signs));
}

/* If nothing proves what went wrong: appends where ranks begin to differ, in calls or in values. */
static bool add_evidence(const Trial *t, const Entry *want, bool found, char *text, size_t size)
{
    size_t used = found ? strlen(text) : 0;
    char *rest = text + used + found;
    size_t room = size - used - found;
    const Calls *calls = t->outcome->calls;
    bool more = calls_explain(t, false, rest, room) ||
                (calls && replicas_diverge(calls, t->c, want->check == FORWARD, rest, room)) ||
                (!found && calls_explain(t, true, rest, room));
    if (found && more)
        text[used] = '\n';
    if (found || more)
        return true;
    const char *line = line_of_raw_look(t);
    if (line[0])
        append(
            text, size,
            _("\nThe cause may be in what is done with the numbers of tensor_data(), as at %s: it "
              "is not recorded"),
            line);
    return false;
}

bool explain(Trial *t, bool search, char *text, size_t size, const Entry *got, const Entry *want,
             double tolerance)
{
    char note[1200];
    bool found, proven = false, has_note = noted(t, want, note, sizeof note);
    t->explained_as = EXPLAINED;
    if (!search) {
        if (has_note)
            snprintf(text, size, "%s", note);
        return has_note;
    }
    if (t->mismatch[0]) {
        snprintf(text, size, "%s", t->mismatch);
        return true;
    }
    if (renamed_parameter(t, text, size) || misdeclared_parameter(t, text, size) ||
        not_zero_at_first(t, text, size))
        return true;
    if (want->check == GROUPS) {
        if (got->count > 0)
            snprintf(text, size, "%s", t->result->lab->examine.wrong_group(t, got, want));
        return true;
    }
    if (!shape_equal(got->shape, want->shape) || got->count != count_held(got)) {
        /* the shape follows from a broken rule */
        found = !(has_note && want->check == FORWARD) && wrong_size(t, got, want, text, size);
    } else {
        double *right = malloc((size_t)got->count * sizeof *right + 1);
        for (int64_t i = 0; i < got->count; i++)
            right[i] = numbers_of(want)[global_index(got, i)];
        Evidence e = {.trial = t,
                      .c = t->c,
                      .got = got,
                      .want = want,
                      .is = numbers_of(got),
                      .right = right,
                      .count = got->count,
                      .tolerance = tolerance,
                      .has_note = has_note,
                      .text = text,
                      .size = size};
        look_over(&e);
        Finder *const preface = t->result->lab->examine.preface;
        const bool alone = preface && preface(&e);
        e.beyond = !alone && call_beyond_group(&e);
        if (e.beyond)
            append(text, size, "\n");
        if (alone || e.beyond) {
            e.text += strlen(text);
            e.size -= strlen(text);
        }
        found = explain_numbers(&e, has_note || e.beyond, &proven);
        if (alone && !found)
            says(&e, _("the values do not match"));
        if (e.beyond && !found)
            e.text[-1] = '\0'; /* the newline */
        found = found || e.beyond;
        proven = proven || e.beyond;
        free(right);
    }
    if (!proven && !has_note)
        found = add_evidence(t, want, found, text, size);
    if (has_note) {
        size_t used = found ? strlen(text) : 0;
        snprintf(text + used, size - used, "%s%s", found ? "\n" : "", note);
    }
    return found || has_note;
}
