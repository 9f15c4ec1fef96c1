/* Numbers the values of two programs: value numbering, after a normal form of each operation. */
#include "grader/judge/reason/numbering.h"

#include <math.h>
#include <string.h>

#include "base/language.h"

static bool has_operation(const OperationList *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (!strcmp(p->operation[i].name, name))
            return true;
    return false;
}

bool is_move(const Forms *f, const TapeOperation *o)
{
    static const char *const moves[] = {"duplication",     "all_reduce",
                                        "all_gather",      "scatter",
                                        "gather_sequence", "reduce_scatter_sequence",
                                        "placed",          NULL};
    for (int i = 0; moves[i]; i++)
        if (!strcmp(o->name, moves[i]))
            return true;
    /* a lab's own pair of functions; a rank's part of a tensor that the plain layer does not split */
    return is_pair(o) || (!strcmp(o->name, "part") && !has_operation(&f->program[PLAIN], "part"));
}

bool same_attribute(const TapeAttribute *a, const TapeAttribute *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->text, b->text) &&
           fabs(a->number - b->number) <= 1e-6 * fmax(fabs(a->number), fabs(b->number));
}

static bool same_form(const Form *a, const Form *b)
{
    if (strcmp(a->name, b->name) != 0 || a->is_outside != b->is_outside || a->keys != b->keys)
        return false;
    for (int i = 0; i < MOST_ATTRIBUTES; i++)
        if (!same_attribute(&a->attribute[i], &b->attribute[i]))
            return false;
    return !memcmp(a->key, b->key, (size_t)a->keys * sizeof *a->key);
}

/* The number of this form, a new one if there is none. */
static int numbered(Forms *f, const Form *form)
{
    for (int i = 0; i < f->count; i++)
        if (same_form(&f->form[i], form))
            return i;
    f->is_full = f->is_full || f->count == MOST_FORMS;
    if (f->is_full)
        return 0;
    f->form[f->count] = *form;
    return f->count++;
}

/* Has an operation before this one, or this one already, taken the same tensor? */
static bool was_taken(const OperationList *p, int i, int k)
{
    const void *tensor = p->operation[i].input[k].tensor;
    for (int j = 0; j <= i; j++)
        for (int n = 0; n < (j == i ? k : p->operation[j].inputs); n++)
            if (p->operation[j].input[n].tensor == tensor)
                return true;
    return false;
}

/* Does some operation take this tensor as the largest number of each row? */
static bool is_most(const OperationList *p, const void *tensor)
{
    for (int j = 0; j < p->count; j++)
        for (int n = 1; n < p->operation[j].inputs; n++)
            if (!strncmp(p->operation[j].name, "row_", 4) &&
                p->operation[j].input[n].tensor == tensor)
                return true;
    return false;
}

static int form_of_outside(Forms *f, Side side, int i, int k)
{
    const TapeOperation *o = &f->program[side].operation[i];
    const TapeTensor *a = &o->input[k];
    Form form = {.is_outside = true, .is_parameter = a->parameter[0] != '\0'};
    if (form.is_parameter) {
        snprintf(form.name, sizeof form.name, "%s", a->parameter);
        return numbered(f, &form);
    }
    if (a->integers) {
        snprintf(form.name, sizeof form.name, "%s",
                 !strncmp(o->name, "attention", 9) ? N_("mask")
                 : !strcmp(o->name, "lookup")      ? N_("ids")
                                                   : N_("targets"));
        return numbered(f, &form);
    }
    f->outside[side] += !was_taken(&f->program[side], i, k);
    snprintf(form.name, sizeof form.name, is_most(&f->program[side], a->tensor) ? "most" : "x");
    return numbered(f, &form);
}

/* The form of an argument of operation i: what the last operation before it with this result has
 * made, because an operation may return its argument. */
static int form_of_argument(Forms *f, Side side, int i, int k)
{
    const TapeOperation *o = f->program[side].operation;
    for (int j = i - 1; j >= 0; j--)
        if (!o[j].back && o[j].output.tensor == o[i].input[k].tensor)
            return f->made[side][j];
    return form_of_outside(f, side, i, k);
}

static bool same_name(const TapeOperation *o, const char *name)
{
    return !strcmp(o->name, name);
}

/* A GELU and the dropout after it may be computed together: the form of this GELU. */
static int form_of_gelu(const Forms *f, Side side, int i, int otherwise)
{
    const TapeOperation *o = f->program[side].operation;
    for (int j = i - 1; j >= 0; j--)
        if (same_name(&o[j], "gelu") && o[j].input[0].tensor == o[i].input[0].tensor)
            return f->made[side][j];
    return otherwise;
}

static void add_key(Form *form, int key)
{
    int at = form->keys < MOST_TERMS ? form->keys++ : MOST_TERMS - 1;
    for (; at > 0 && form->key[at - 1] > key; at--)
        form->key[at] = form->key[at - 1];
    form->key[at] = key;
}

/* The terms of a sum, sorted: their order changes nothing but rounding. */
static void set_keys(const Forms *f, Form *form)
{
    const bool is_sum = !strcmp(form->name, "add");
    for (int k = 0; k < form->takes; k++) {
        const Form *taken = &f->form[form->taken[k]];
        if (!is_sum)
            form->key[form->keys++] = form->taken[k];
        else if (!taken->is_outside && !strcmp(taken->name, "add"))
            for (int i = 0; i < taken->keys; i++)
                add_key(form, taken->key[i]);
        else
            add_key(form, form->taken[k]);
    }
}

/* Attention's heads as the size of one: a rank has some of the heads. */
static void set_attributes(const TapeOperation *o, Form *form)
{
    memcpy(form->attribute, o->attribute, sizeof form->attribute);
    TapeAttribute *first = &form->attribute[0];
    if (!strcmp(first->name, "heads") && first->number > 0)
        first->number = (double)o->output.shape.size[2] / first->number;
    if (same_name(o, "first_token")) {
        form->attribute[0] = (TapeAttribute){.name = "dimension", .number = 1};
        form->attribute[1] = (TapeAttribute){.name = "index", .number = 0};
    }
    if (!strcmp(form->name, "take"))
        form->attribute[2] = (TapeAttribute){.name = ""};
}

/* take() of a product with weights stacked along their dimension 0 is the product with what take()
 * selects of the weights: the form of that, or NO_FORM if this is no such product. */
static int form_of_selected(Forms *f, Side side, const TapeOperation *o, const Form *take,
                            int number)
{
    Form part = f->form[number];
    const bool is_sum = !strcmp(part.name, "add_bias");
    if (part.is_parameter) {
        part = *take;
        part.taken[0] = number;
        part.attribute[0].number = 0;
    } else if (part.is_outside || part.takes != 2 || (!is_sum && strcmp(part.name, "linear") != 0))
        return NO_FORM;
    for (int k = is_sum ? 0 : 1; k < part.takes && !f->form[number].is_parameter; k++)
        if ((part.taken[k] = form_of_selected(f, side, o, take, part.taken[k])) == NO_FORM)
            return NO_FORM;
    part.keys = 0;
    set_keys(f, &part);
    memset(part.by, 0, sizeof part.by);
    const int form = numbered(f, &part);
    if (!f->form[form].by[side])
        f->form[form].by[side] = o;
    return form;
}

static int form_of_operation(Forms *f, Side side, int i)
{
    const TapeOperation *o = &f->program[side].operation[i];
    Form form = {.takes = o->inputs};
    const char *name = same_name(o, "first_token")        ? "take"
                       : same_name(o, "gelu and dropout") ? "dropout"
                                                          : o->name;
    for (int k = 0; k < o->inputs; k++)
        form.taken[k] = form_of_argument(f, side, i, k);
    if (is_move(f, o) && o->inputs > 0)
        return form.taken[0];
    if (same_name(o, "gelu and dropout"))
        form.taken[0] = form_of_gelu(f, side, i, form.taken[0]);
    if (same_name(o, "linear") && o->inputs == 3) { /* with a bias */
        Form product = {.name = "linear", .takes = 2};
        memcpy(product.taken, form.taken, 2 * sizeof *form.taken);
        set_keys(f, &product);
        const int bias = form.taken[2], number = numbered(f, &product);
        if (!f->form[number].by[side])
            f->form[number].by[side] = o;
        name = "add_bias";
        form.takes = 2;
        form.taken[0] = number;
        form.taken[1] = bias;
    }
    snprintf(form.name, sizeof form.name, "%s", name);
    set_attributes(o, &form);
    set_keys(f, &form);
    const int selected = !strcmp(name, "take") && o->input[0].shape.rank == 4
                             ? form_of_selected(f, side, o, &form, form.taken[0])
                             : NO_FORM;
    return selected != NO_FORM ? selected : numbered(f, &form);
}

void forms_make(Forms *f)
{
    f->count = 0;
    f->is_full = false;
    for (int side = PLAIN; side >= RANK; side--) { /* plain forms have the same numbers each time */
        f->outside[side] = 0;
        for (int i = 0; i < f->program[side].count; i++) {
            const TapeOperation *o = &f->program[side].operation[i];
            const int forced = side == RANK ? f->forced[i] : NO_FORM,
                      form = forced != NO_FORM ? forced : form_of_operation(f, (Side)side, i);
            f->made[side][i] = form;
            if (!f->form[form].is_outside && !f->form[form].by[side] && !is_move(f, o))
                f->form[form].by[side] = o;
        }
        if (side == PLAIN)
            f->plain = f->count;
    }
}
