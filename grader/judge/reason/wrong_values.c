/* The first operation of a pass whose arguments or result, or whose returned gradient, has other
 * numbers than in the plain program. */
#include <math.h>
#include <stdlib.h>

#include "base/language.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/reason/recorded_values.h"
#include "tensor/tensor.h"

static void append_call(const Comparison *c, int i, char text[LINE])
{
    const TapeOperation *o = &c->f.program[RANK].operation[i];
    if (is_move(&c->f, o) || !strcmp(o->name, "take")) /* the form of a part is that of its whole */
        append(text, LINE, "%s", o->name);
    else
        append_operation(c, form_by(c, i), text);
}

/* How many operations take this tensor. Sets *function to the one that is a function of a lab, or to
 * NO_FORM if there is none or several. */
static int takers_of(const Comparison *c, const void *tensor, int *function)
{
    int takers = 0, functions = 0;
    for (int j = 0; j < c->f.program[RANK].count; j++) {
        const TapeOperation *o = &c->f.program[RANK].operation[j];
        for (int k = 0; k < o->inputs; k++) {
            if (o->input[k].tensor != tensor)
                continue;
            takers++;
            if (!is_of_kit(c, o)) {
                functions++;
                *function = j;
            }
        }
    }
    if (functions != 1)
        *function = NO_FORM;
    return takers;
}

/* Is this the result of a move of something that other operations take too? Then its gradient is
 * only a part of the plain one. */
static bool has_part_of_gradient(const Comparison *c, int i)
{
    int function;
    const TapeOperation *o = &c->f.program[RANK].operation[i];
    return is_move(&c->f, o) && takers_of(c, o->input[0].tensor, &function) != 1;
}

/* Do the ranks take other integers than the plain program? If each looks up its own part of them, all
 * together count. Writes how. */
static bool are_other_integers(const Recorded *r, bool in_parts, bool of_table, char how[LINE])
{
    double all = 0, held = 0, other = -1;
    for (int k = 0; k < r->ranks; k++) {
        all += r->rank[k]->sum[1];
        held += r->rank[k]->size;
        if (r->rank[k]->sum[0] != r->plain->sum[0])
            other = r->rank[k]->size;
    }
    if (in_parts ? fabs(all - r->plain->sum[1]) <= 1e-9 * r->plain->sum[1] : other < 0)
        return false;
    held = in_parts ? held : other;
    how[0] = '\0';
    if (held != r->plain->size)
        append(how, LINE,
               in_parts ? _(": over all ranks, %.0f of them are not NO_ID, and %.0f should be")
                        : _(": %.0f of them are not NO_ID, and %.0f should be"),
               held, r->plain->size);
    if (in_parts || of_table)
        append(how, LINE, "%s",
               _(". Each id belongs to the rank that holds its row or column, and counts from the "
                 "first one there: ids_between() with shard_begin(), or own_ids()"));
    return true;
}

/* Is an argument that no operation has made another one than the plain program's? Writes how. */
static bool is_other_argument(const Comparison *c, const PassPrograms *p, int i, int k,
                              char how[LINE])
{
    const TapeOperation *o = &c->f.program[RANK].operation[i];
    double factor = 1;
    Recorded r;
    if (!find_argument(c, p, i, k, &r))
        return false;
    if (o->input[k].integers)
        return are_other_integers(&r, o->output.kind == PARTIAL && p->ranks > 1,
                                  !strcmp(o->name, "lookup"), how);
    Wrong wrong = wrong_of(&r, &factor);
    for (int rank = 1; rank < r.ranks && wrong && !r.added; rank++)
        if (!is_sum_of(r.rank[rank]->sum, r.rank[0]->sum, r.rank[0]->size))
            wrong = OF_EACH_RANK;
    say_how(wrong, factor, how);
    return wrong;
}

/* Has the result of an operation changed when another one takes it? Writes how. */
static bool has_changed(const TapeTensor *made, const TapeTensor *taken, char how[LINE])
{
    double factor = 1;
    const Recorded r = {.rank = {taken}, .plain = made, .ranks = 1};
    const Wrong wrong = made->size < 0 || taken->size < 0 ? NOT_WRONG : wrong_of(&r, &factor);
    say_how(wrong, factor, how);
    return wrong;
}

/* Does the plain program take no such tensor in this place, and none with these numbers elsewhere? */
static bool is_unknown(const Comparison *c, const PassPrograms *p, int i, int k)
{
    const TapeTensor *a = &c->f.program[RANK].operation[i].input[k];
    char how[LINE];
    Recorded r;
    int by;
    return !a->integers && !a->parameter[0] && c->f.program[PLAIN].count > 0 &&
           !find_argument(c, p, i, k, &r) &&
           (!find_on_ranks(c, p, i, k, &r) || are_known_numbers(c, &r, &by, how) != KNOWN_NUMBERS);
}

/* Are all arguments of operation i right? If one is not, though what has made it was, tells it. */
static Known takes_right_values(const Comparison *c, const PassPrograms *p, const bool right[],
                                int i, char *text, size_t size)
{
    const TapeOperation *all = c->f.program[RANK].operation, *o = &all[i];
    char how[LINE], name[LINE] = "", other[LINE] = "";
    for (int k = 0; k < o->inputs; k++) {
        const int j = maker_of(c, RANK, i, o->input[k].tensor);
        if ((j != NO_FORM && !right[j]) || (j == NO_FORM && is_unknown(c, p, i, k)))
            return NOT_COMPARED;
        if (j != NO_FORM ? !has_changed(&all[j].output, &o->input[k], how)
                         : !is_other_argument(c, p, i, k, how))
            continue;
        if (j == NO_FORM && o->input[k].needs_gradient && !o->input[k].parameter[0] && !p->first)
            return NOT_COMPARED; /* another pass has made it */
        append_call(c, i, name);
        if (j == NO_FORM) {
            append_value(c, form_by(c, i)->taken[k], SHORT, other);
            snprintf(text, size, _("%s at %s takes other numbers for `%s` than the layer%s"), name,
                     line_of(o->address), other, how);
        } else {
            append_call(c, j, other);
            snprintf(
                text, size,
                _("the result of %s at %s is right, but was changed before %s at %s took it%s"),
                other, line_of(all[j].address), name, line_of(o->address), how);
        }
        return OTHER_NUMBERS;
    }
    return KNOWN_NUMBERS;
}

/* Tells of an operation that takes a tensor of values only. In a forward pass, the values must be
 * wrong. */
static bool takes_values_only(const Comparison *c, const PassPrograms *p, bool gradient, char *text,
                              size_t size)
{
    char how[LINE] = "", name[LINE] = "";
    Recorded r;
    int by;
    for (int i = 0; i < c->f.program[RANK].count; i++)
        for (int k = 0; k < c->f.program[RANK].operation[i].inputs; k++) {
            if (!is_values_only(c, i, k))
                continue;
            if (!gradient && (!find_on_ranks(c, p, i, k, &r) ||
                              are_known_numbers(c, &r, &by, how) != OTHER_NUMBERS))
                continue;
            append_call(c, i, name);
            snprintf(text, size,
                     _("%s at %s takes a tensor that is not on the tape, as group_... and "
                       "..._forward functions, tensor_copy() and loops over tensor_data() make "
                       "them%s"),
                     name, line_of(c->f.program[RANK].operation[i].address),
                     gradient ? _(": it has values, and no gradient flows back through it")
                     : how[0] ? how
                              : _("; its numbers are not those of any result of the layer"));
            return true;
        }
    return false;
}

/* What the plain program computes next from this form, or NULL. */
static const Form *next_in_plain(const Comparison *c, int from)
{
    for (int j = 0; j < c->f.program[PLAIN].count; j++) {
        const Form *form = form_at(c, c->f.made[PLAIN][j]);
        for (int k = 0; k < form->takes; k++)
            if (form->taken[k] == from)
                return form;
    }
    return NULL;
}

/* Tells what is wrong after the rank's last operation, whose result is right. */
static void tell_after_last(const Comparison *c, const PassPrograms *p, int last, char *text,
                            size_t size)
{
    char how[LINE], name[LINE] = "", other[LINE] = "";
    const TapeOperation *o = &c->f.program[RANK].operation[last];
    const Form *next = next_in_plain(c, c->f.made[RANK][last]);
    append_call(c, last, name);
    say_how(p->returned == 1 ? ANOTHER : TIMES, p->returned, how);
    if (next)
        append_operation(c, next, other);
    if (o->output.kind == PARTIAL)
        snprintf(text, size,
                 _("on each rank, the result of %s at %s is one term of a sum, and no operation "
                   "adds these terms up"),
                 name, line_of(o->address));
    else if (next)
        snprintf(text, size, _("the result of %s at %s is right, but %s is missing after it"), name,
                 line_of(o->address), other);
    else
        snprintf(
            text, size,
            _("the result of %s at %s is right, but it was changed later, or another tensor was returned%s"),
            name, line_of(o->address), how);
}

/* The operation without a counterpart in the plain program from which this one's result follows, or
 * NO_FORM. `own` has it for the operations before. */
static int follows_from_own(const Comparison *c, const int own[], int i)
{
    const TapeOperation *o = &c->f.program[RANK].operation[i];
    for (int k = 0; k < o->inputs; k++) {
        const int j = maker_of(c, RANK, i, o->input[k].tensor);
        if (j != NO_FORM && own[j] != NO_FORM)
            return own[j];
    }
    return NO_FORM;
}

/* May the operation add up what the ranks give it? */
static bool adds_up(const TapeOperation *o)
{
    return is_pair(o) || !strcmp(o->name, "all_reduce") ||
           !strcmp(o->name, "reduce_scatter_sequence");
}

/* Does an operation that adds up nothing over the ranks take one term of a sum? */
static bool takes_one_term(const TapeOperation *o)
{
    for (int k = 0; k < o->inputs && !adds_up(o); k++)
        if (o->input[k].kind == PARTIAL)
            return true;
    return false;
}

static bool wrong_result(const Comparison *c, const PassPrograms *p, bool *is_open, char *text,
                         size_t size)
{
    char how[LINE], name[LINE] = "";
    bool right[RING_OPERATIONS] = {0};
    int own[RING_OPERATIONS]; /* see follows_from_own() */
    Known taken = NOT_COMPARED;
    double factor = 1;
    Recorded r;
    const int count = (int)c->f.program[RANK].count;
    for (int i = 0; i < count; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        taken = takes_right_values(c, p, right, i, text, size);
        own[i] = follows_from_own(c, own, i);
        const bool by_numbers = is_move(&c->f, o) && c->f.forced[i] == NO_FORM &&
                                (is_pair(o) || !plain_operation(c, i));
        Wrong wrong = ANOTHER;
        if (by_numbers && !is_values_only(c, i, 0)) {
            const Known known = is_right_move(c, p, i, how);
            if (known == NOT_COMPARED)
                continue;
            wrong = known == KNOWN_NUMBERS ? NOT_WRONG : ANOTHER;
        } else if (find_recorded(c, p, i, false, &r)) {
            wrong = wrong_of(&r, &factor);
            say_how(wrong, factor, how);
            own[i] = NO_FORM;
        } else {
            own[i] = own[i] == NO_FORM && !is_move(&c->f, o) ? i : own[i];
            right[i] = taken == KNOWN_NUMBERS &&
                       !is_move(&c->f, o); /* the kit computes what it is asked */
            continue;
        }
        right[i] = !wrong && (taken == KNOWN_NUMBERS || !by_numbers);
        if (wrong && taken == OTHER_NUMBERS)
            return true;
        if (!wrong || taken != KNOWN_NUMBERS)
            continue;
        append_call(c, i, name);
        if (takes_one_term(o)) {
            snprintf(text, size,
                     _("%s at %s takes one term of a sum: no operation has added up the terms of "
                       "all ranks"),
                     name, line_of(o->address));
            return true;
        }
        *is_open = !how[0];
        if (*is_open && adds_up(o)) {
            snprintf(text, size,
                     _("what %s at %s takes on this rank is right, and its result is not: either "
                       "it is wrong, or what another rank gives it"),
                     name, line_of(o->address));
            return true;
        }
        snprintf(text, size, _("what %s at %s takes is right, and its result is not%s"), name,
                 line_of(o->address), how);
        return true;
    }
    if (!p->returned || !right[count - 1] || taken != KNOWN_NUMBERS)
        return false;
    if (own[count - 1] == NO_FORM) {
        tell_after_last(c, p, count - 1, text, size);
        return true;
    }
    append_call(c, own[count - 1], name);
    snprintf(text, size,
             _("what %s at %s takes is right, and what the lab returns is wrong: the mistake is "
               "there or after it"),
             name, line_of(c->f.program[RANK].operation[own[count - 1]].address));
    return true;
}

static bool wrong_gradient(const Comparison *c, const PassPrograms *p, bool *is_open, char *text,
                           size_t size)
{
    char how[LINE], name[LINE] = "";
    double factor = 1;
    int by;
    Recorded r;
    for (int i = (int)c->f.program[RANK].count - 1; i >= 0; i--) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        if (has_part_of_gradient(c, i) || !find_recorded(c, p, i, true, &r))
            continue;
        const Wrong wrong = wrong_of(&r, &factor);
        if (!wrong)
            continue;
        takers_of(c, o->output.tensor, &by);
        by = wrong == LOST_TERMS ? NO_FORM : by;
        if (by == NO_FORM && wrong != LOST_TERMS && p->has_loops)
            return false; /* a loop over raw numbers is not on the tape */
        append_call(c, by == NO_FORM ? i : by, name);
        if (by != NO_FORM)
            o = &c->f.program[RANK].operation[by];
        say_how(wrong, factor, how);
        *is_open = wrong == ANOTHER;
        snprintf(
            text, size,
            wrong == LOST_TERMS
                ? _("on each rank, the gradient of the result of %s at %s is one term of a sum, and no operation adds these terms up%s")
            : by == NO_FORM
                ? _("the gradient of the result of %s at %s is the first that is wrong%s")
                : _("in the backward pass, %s at %s is the first operation that returns a "
                    "wrong gradient%s"),
            name, line_of(o->address), wrong == LOST_TERMS ? "" : how);
        return true;
    }
    /* what takes x, or the parameter, returns its gradient */
    for (int i = 0; i < c->f.program[RANK].count; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        const bool is_wrong = o->input[0].parameter[0]
                                  ? p->parameter && !strcmp(p->parameter, o->input[0].parameter)
                                  : p->input_gradient_is_wrong;
        if (!is_wrong || maker_of(c, RANK, i, o->input[0].tensor) != NO_FORM ||
            !o->input[0].needs_gradient || takers_of(c, o->input[0].tensor, &by) != 1 ||
            !gradient_of(p->back[p->own], o) || (is_of_kit(c, o) && strcmp(o->name, "part") != 0))
            continue;
        *is_open = strcmp(o->name, "part") != 0;
        append_call(c, i, name);
        snprintf(text, size,
                 _("in the backward pass, %s at %s is the first operation that returns a "
                   "wrong gradient%s"),
                 name, line_of(o->address),
                 strcmp(o->name, "part") ? "" : _(": outside of that part, it is zero"));
        return true;
    }
    return false;
}

bool first_wrong_value(const PassPrograms *p, bool gradient, bool *is_open, char *text, size_t size)
{
    Comparison *c = comparison_new(p->forward[p->own], p->plain);
    const bool by_values = c && c->f.outside[RANK] > c->f.outside[PLAIN];
    *is_open = false;
    bool found = by_values && gradient && takes_values_only(c, p, true, text, size);
    if (c && !found) {
        identify(c, p);
        found = gradient ? wrong_gradient(c, p, is_open, text, size)
                         : wrong_result(c, p, is_open, text, size) ||
                               (by_values && takes_values_only(c, p, false, text, size));
    }
    if (!found)
        text[0] = '\0';
    free(c);
    return found;
}
