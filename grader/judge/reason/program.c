/* The first difference between a rank's program and the plain layer's, as a sentence. Both are walked
 * forwards: the first operation of the rank whose result the plain layer does not compute takes only
 * values that both compute. If another operation in its place makes the programs equal, that one
 * was meant. */
#include <stdlib.h>

#include "grader/judge/mpi/recorded.h"
#include "grader/judge/reason/comparison.h"

/* Is this a sum that only sums take? */
static bool is_part_of_sum(const Comparison *c, int i)
{
    const TapeOperation *o = c->f.program[RANK].operation;
    bool taken = false;
    for (int j = i + 1; j < c->f.program[RANK].count && is_sum(form_by(c, i)); j++)
        for (int k = 0; k < o[j].inputs; k++)
            if (o[j].input[k].tensor == o[i].output.tensor) {
                taken = true;
                if (!is_sum(form_by(c, j)))
                    return false;
            }
    return taken;
}

bool is_other(const Comparison *c, int i)
{
    return c->matters[i] && !is_move(&c->f, &c->f.program[RANK].operation[i]) &&
           !form_by(c, i)->is_outside && !form_by(c, i)->by[PLAIN] && !is_part_of_sum(c, i);
}

/* The first operation of the rank whose result the plain program does not compute, or NO_FORM. */
static int first_other(const Comparison *c)
{
    for (int i = 0; i < c->f.program[RANK].count; i++)
        if (is_other(c, i))
            return i;
    return NO_FORM;
}

static int last_form(const Comparison *c, Side side)
{
    return c->f.made[side][c->f.program[side].count - 1];
}

/* Does no operation take this one's result? */
static bool is_result(const OperationList *p, int i)
{
    for (int j = i + 1; j < p->count; j++)
        for (int k = 0; k < p->operation[j].inputs; k++)
            if (p->operation[j].input[k].tensor == p->operation[i].output.tensor)
                return false;
    return true;
}

/* A result of the plain program, other than its last one, that the rank does not compute; or NO_FORM. */
static int missing_result(const Comparison *c)
{
    const OperationList *plain = &c->f.program[PLAIN];
    for (int i = 0; i + 1 < plain->count; i++)
        if (is_result(plain, i) && !form_at(c, c->f.made[PLAIN][i])->by[RANK])
            return c->f.made[PLAIN][i];
    return NO_FORM;
}

/* The number of results in which the rank's program differs; 0 if the programs are equal. */
static int differences(const Comparison *c)
{
    int count = (last_form(c, RANK) != last_form(c, PLAIN)) + (missing_result(c) != NO_FORM);
    for (int i = 0; i < c->f.program[RANK].count; i++)
        count += is_other(c, i);
    return count;
}

/* The same if operation i of the rank computed this. */
static int differences_with(const Comparison *c, int i, int form)
{
    Comparison *other = malloc(sizeof *other);
    *other = *c;
    other->f.forced[i] = form;
    forms_make(&other->f);
    const int count = differences(other);
    free(other);
    return count;
}

/* Marks the operations on which the last one depends or, if the plain program has several results, on
 * which any result does. */
static void mark_what_matters(Comparison *c)
{
    const OperationList *rank = &c->f.program[RANK], *plain = &c->f.program[PLAIN];
    const TapeOperation *o = rank->operation;
    const int count = (int)rank->count;
    int results = 0;
    for (int i = 0; i < plain->count; i++)
        results += is_result(plain, i);
    for (int i = count - 1; i >= 0; i--) {
        c->matters[i] |= i == count - 1 || (results > 1 && is_result(rank, i));
        for (int k = 0; k < o[i].inputs && c->matters[i]; k++)
            for (int j = 0; j < i; j++)
                c->matters[j] |=
                    o[j].output.tensor == o[i].input[k].tensor ||
                    (!strcmp(o[i].name, "gelu and dropout") && !strcmp(o[j].name, "gelu") &&
                     o[j].input[0].tensor == o[i].input[0].tensor);
    }
}

bool same_attributes(const Form *a, const Form *b)
{
    for (int i = 0; i < MOST_ATTRIBUTES; i++)
        if (!same_attribute(&a->attribute[i], &b->attribute[i]))
            return false;
    return true;
}

/* How alike two operations are. Parameters count more than values: they say which operation is
 * meant. */
static int likeness(const Comparison *c, const Form *a, const Form *b)
{
    int alike = strcmp(a->name, b->name) ? 0 : 8;
    for (int k = 0; k < a->takes && k < b->takes; k++)
        if (a->taken[k] == b->taken[k])
            alike += form_at(c, a->taken[k])->is_parameter ? 3 : 2;
    return alike + same_attributes(a, b);
}

int only_in(const Form *a, const Form *b, int other[MOST_INPUTS])
{
    bool used[MOST_INPUTS] = {0};
    int count = 0;
    for (int k = 0; k < a->takes; k++) {
        int n = is_sum(a) ? 0 : k;
        while (is_sum(a) && n < b->takes && (used[n] || b->taken[n] != a->taken[k]))
            n++;
        if (n < b->takes && b->taken[n] == a->taken[k])
            used[n] = true;
        else
            other[count++] = a->taken[k];
    }
    return count;
}

bool same_operation(const Comparison *c, const Form *a, const Form *b)
{
    if (strcmp(a->name, b->name) != 0 || !same_attributes(a, b) || a->takes != b->takes)
        return false;
    for (int k = 0; k < a->takes; k++)
        if (a->taken[k] != b->taken[k] &&
            (form_at(c, a->taken[k])->is_parameter || form_at(c, b->taken[k])->is_parameter))
            return false;
    return true;
}

/* The form that operation i of the rank should compute: the one, of those that only the plain
 * program computes, with which the programs differ least. NO_FORM if there is none with the same
 * name, or that takes the same and makes the programs equal. Sets *left to how many results then
 * still differ. */
static int meant_by(const Comparison *c, int i, int *left)
{
    const Form *is = form_by(c, i);
    int best = NO_FORM, most = 0, other[MOST_INPUTS];
    *left = MOST_FORMS;
    for (int p = 0; p < c->f.plain; p++) {
        const Form *form = form_at(c, p);
        if (form->is_outside || form->by[RANK])
            continue;
        const int count = differences_with(c, i, p), alike = likeness(c, is, form);
        const bool same_name = !strcmp(form->name, is->name),
                   replaces = count == 0 && !only_in(is, form, other) && !only_in(form, is, other);
        if (!(same_name || replaces) || count > *left || (count == *left && alike <= most))
            continue;
        best = p;
        most = alike;
        *left = count;
    }
    return best;
}

/* Lets operation i of the rank compute this. @return how many results then still differ */
static int correct(Comparison *c, int i, int form)
{
    if (!c->address)
        c->address = c->f.program[RANK].operation[i].address;
    c->f.forced[i] = form;
    forms_make(&c->f);
    return differences(c);
}

/* The operation of the rank that computes again what another one has computed, although the plain
 * program computes something else with the same operation, from the same value, with another
 * weight. Sets *meant to that. */
static int computed_again(const Comparison *c, int *meant)
{
    for (int i = 1; i < c->f.program[RANK].count; i++) {
        const int made = c->f.made[RANK][i];
        const Form *is = form_at(c, made);
        bool again = false;
        for (int j = 0; j < i; j++)
            again = again || c->f.made[RANK][j] == made;
        for (*meant = 0; again && c->matters[i] && !is->is_outside && *meant < c->f.plain;
             ++*meant) {
            const Form *plain = form_at(c, *meant);
            if (!plain->is_outside && !plain->by[RANK] && !strcmp(plain->name, is->name) &&
                same_attributes(plain, is) && data_of(c, plain) == data_of(c, is) &&
                !is_move(&c->f, &c->f.program[RANK].operation[i]))
                return i;
        }
    }
    return NO_FORM;
}

/* Tells which operation is missing if the rank computes nothing else: before its last result, or before
 * another one. */
static bool tell_unfinished(Comparison *c)
{
    const int result = missing_result(c);
    int first, from = result;
    if (result == NO_FORM)
        return leads_to(c, last_form(c, RANK), last_form(c, PLAIN), &first) &&
               tell_missing(c, NO_FORM, last_form(c, RANK), first);
    while (from != NO_FORM && !form_at(c, from)->by[RANK])
        from = form_at(c, from)->is_outside ? NO_FORM : data_of(c, form_at(c, from));
    if (from == NO_FORM || !leads_to(c, from, result, &first))
        return false;
    for (int i = 0; i < c->f.program[RANK].count; i++) /* such as another part of the same value */
        if (!strcmp(form_by(c, i)->name, form_at(c, first)->name) &&
            data_of(c, form_by(c, i)) == from)
            return false;
    return tell_missing(c, NO_FORM, from, first);
}

/* Tells of the first difference, and makes the rank's operation compute what was meant.
 * @return whether it was told; *left says how many results then still differ */
static bool next_difference(Comparison *c, int *left)
{
    int again, i = computed_again(c, &again);
    if (i != NO_FORM && differences_with(c, i, again) < differences(c)) {
        const bool told = tell_difference(c, i, again);
        *left = correct(c, i, again);
        return told;
    }
    i = first_other(c);
    *left = 0;
    if (i == NO_FORM)
        return tell_unfinished(c);
    const Form *is = form_by(c, i);
    const int of = data_of(c, is), meant = meant_by(c, i, left),
              data = of == NO_FORM && is->takes > 0 ? is->taken[0] : of;
    const bool extra = data != NO_FORM && data < c->f.plain &&
                       (meant == NO_FORM ||
                        (strcmp(is->name, "linear") != 0 && differences_with(c, i, data) < *left));
    if (!extra && meant == NO_FORM)
        return false;
    const bool told = extra ? tell_extra(c, i) : tell_difference(c, i, meant);
    *left = correct(c, i, extra ? data : meant);
    return told;
}

/* The length of what the names of all parameters of the plain program begin with, "first.": their
 * layer. */
static int length_of_layer(const Comparison *c)
{
    const char *name = NULL;
    int length = 0;
    for (int i = 0; i < c->f.plain; i++) {
        const Form *form = form_at(c, i);
        int common = 0;
        if (!form->is_parameter)
            continue;
        for (int at = 0; form->name[at] && (!name || (at < length && form->name[at] == name[at]));
             at++)
            if (form->name[at] == '.')
                common = at + 1;
        length = common;
        name = form->name;
    }
    return length;
}

Comparison *comparison_new(OperationList rank, OperationList plain)
{
    if (!rank.count || rank.count > RING_OPERATIONS || plain.count > RING_OPERATIONS)
        return NULL;
    Comparison *c = calloc(1, sizeof *c);
    c->f.program[RANK] = rank;
    c->f.program[PLAIN] = plain;
    for (int i = 0; i < RING_OPERATIONS; i++)
        c->f.forced[i] = NO_FORM;
    forms_make(&c->f);
    c->layer = length_of_layer(c);
    mark_what_matters(c);
    return c;
}

bool program_difference(OperationList rank, OperationList plain, ProgramDifference *difference)
{
    enum { MOST_STEPS = 6 };
    Comparison *c = plain.count ? comparison_new(rank, plain) : NULL;
    if (!c)
        return false;
    const bool traced = !c->f.is_full && c->f.outside[RANK] <= c->f.outside[PLAIN];
    int left = traced ? differences(c) : 0;
    for (int steps = 0; left > 0 && steps < MOST_STEPS; steps++)
        if (!next_difference(c, &left))
            break;
    if (c->count == 0 && traced)
        tell_unmarked(c);
    *difference = (ProgramDifference){.address = c->address};
    for (int i = 0; i < c->count && (i == 0 || (left == 0 && c->count == 2)); i++)
        append(difference->text, sizeof difference->text, "%s%s", i ? "\n" : "", c->told[i]);
    const bool found = c->count > 0;
    free(c);
    return found;
}
