/* The sentences for one difference between two programs. */
#include <math.h>
#include <stdarg.h>

#include "base/language.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/reason/comparison.h"
#include "tensor/tensor.h"

static bool tell(Comparison *c, int of, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool tell(Comparison *c, int of, const char *format, ...)
{
    va_list args;
    for (int i = 0; i < c->count; i++)
        if (of != NO_FORM && c->of[i] == of)
            return true;
    if (c->count == MOST_TOLD)
        return false;
    c->of[c->count] = of;
    va_start(args, format);
    vsnprintf(c->told[c->count], LINE, format, args);
    va_end(args);
    if (c->count == 0 || strcmp(c->told[c->count], c->told[c->count - 1]) != 0)
        c->count++;
    return true;
}

static const char *line_at(const Comparison *c, int i)
{
    return line_of(c->f.program[RANK].operation[i].address);
}

/* What a factor of attention's scores is, if it is one of the usual mistakes. */
static const char *reading_of_factor(double factor, double head, double width, double hidden)
{
    const struct {
        double factor;
        const char *text;
    } readings[] = {{1 / sqrt(hidden), N_(" = 1/sqrt(hidden size)")},
                    {1 / sqrt(width), N_(" = 1/sqrt(width on this rank)")},
                    {1 / sqrt(hidden / head), N_(" = 1/sqrt(number of heads)")},
                    {1 / sqrt(width / head), N_(" = 1/sqrt(heads on this rank)")},
                    {1 / sqrt(hidden * head / width), N_(" = 1/sqrt(head size · tp)")},
                    {1 / sqrt(width * head / hidden), N_(" = 1/sqrt(head size / tp)")},
                    {1 / head, N_(" = 1/head size")},
                    {sqrt(head), N_(" = sqrt(head size)")},
                    {1 / floor(sqrt(head)), N_(" = 1/(sqrt(head size) as an integer)")}};
    for (size_t i = 0; i < sizeof readings / sizeof *readings && factor != 1; i++)
        if (fabs(readings[i].factor - factor) <= 1e-5 * factor)
            return _(readings[i].text);
    return "";
}

static bool tell_attribute(Comparison *c, int i, int meant)
{
    const Form *is = form_by(c, i);
    const Form *plain = form_at(c, meant);
    const TapeOperation *o = &c->f.program[RANK].operation[i], *p = plain->by[PLAIN];
    const char *line = line_at(c, i);
    const double width = (double)o->output.shape.size[2], hidden = (double)p->output.shape.size[2];
    int k = 0;
    while (k < MOST_ATTRIBUTES - 1 && same_attribute(&is->attribute[k], &plain->attribute[k]))
        k++;
    const TapeAttribute *a = &is->attribute[k], *b = &plain->attribute[k];
    if (b->text[0])
        return tell(c, meant, _("%s at %s: %s %s, expected %s"), is->name, line, _(b->name),
                    a->text, b->text);
    if (!strcmp(b->name, "factor"))
        return tell(c, meant, _("%s at %s: factor %.4g%s, expected 1/sqrt(head size) = %.4g"),
                    is->name, line, a->number,
                    reading_of_factor(a->number, plain->attribute[0].number, width, hidden),
                    b->number);
    if (!strcmp(b->name, "heads"))
        return tell(c, meant, _("%s at %s: heads %.4g, expected %.4g on this rank"), is->name, line,
                    o->attribute[k].number, width / b->number);
    return tell(c, meant, _("%s at %s: %s %.4g, expected %.4g"), is->name, line, _(b->name),
                a->number, b->number);
}

bool leads_to(const Comparison *c, int from, int to, int *first)
{
    const Form *form = form_at(c, to);
    if (form->is_outside || form->by[RANK] || (is_sum(form) && form_at(c, from)->is_outside))
        return false;
    for (int k = 0; k < form->takes; k++) {
        if (form->taken[k] == from) {
            *first = to;
            return true;
        }
        if (leads_to(c, from, form->taken[k], first))
            return true;
    }
    return false;
}

/* An operation of the rank after operation i that is like this one, but does not compute the same;
 * or NULL. All sums are alike. */
static const Form *like_after(const Comparison *c, int i, const Form *missing)
{
    for (int j = i + 1; j < c->f.program[RANK].count && !is_sum(missing); j++)
        if (is_other(c, j) && same_operation(c, form_by(c, j), missing))
            return form_by(c, j);
    return NULL;
}

/* An operation of the lab's own that takes this value, or NULL. */
static const TapeOperation *own_operation(const Comparison *c, int form)
{
    const OperationList *p = &c->f.program[RANK];
    for (int i = 0; i < p->count; i++)
        if (is_pair(&p->operation[i]) && c->f.made[RANK][i] == form)
            return &p->operation[i];
    return NULL;
}

bool tell_missing(Comparison *c, int i, int from, int missing)
{
    char name[LINE] = "", after[LINE] = "", before[LINE] = "";
    const Form *late = i == NO_FORM ? NULL : like_after(c, i, form_at(c, missing));
    const TapeOperation *own = own_operation(c, from);
    const int added = is_sum(form_at(c, missing)) ? added_to(form_at(c, missing), from) : NO_FORM;
    append_operation(c, form_at(c, missing), name);
    append_placed(c, from, after);
    if (own)
        return tell(c, missing, _("%s at %s, an operation of your own, is where the layer has %s"),
                    own->name, line_of(own->address), name);
    if (c->count > 0 && c->of[c->count - 1] == NO_FORM && !is_sum(&c->extra) &&
        same_operation(c, &c->extra, form_at(c, missing))) {
        c->count--;
        return tell(c, missing, _("%s at %s comes too early: the layer applies it after %s"), name,
                    line_of(c->extra.by[RANK]->address), after);
    }
    if (added != NO_FORM) {
        append_placed(c, added, before);
        return tell(c, missing, _("%s is not added to %s"), before, after);
    }
    if (late) {
        append_operation(c, form_by(c, i), before);
        return tell(c, missing, _("%s at %s comes too late: the layer applies it before %s at %s"),
                    name, line_of(late->by[RANK]->address), before, line_at(c, i));
    }
    if (!strcmp(form_at(c, missing)->name, "dropout")) /* with 0, it records nothing */
        append(name, LINE, "%s", _(" with a probability above 0"));
    if (i == NO_FORM)
        return tell(c, missing, _("%s is missing after %s"), name, after);
    append_operation(c, form_by(c, i), before);
    return tell(c, missing, _("%s is missing between %s and %s at %s"), name, after, before,
                line_at(c, i));
}

static bool any_of_another_layer(const Comparison *c, const int *form, int count)
{
    for (int k = 0; k < count; k++)
        if (is_of_another_layer(c, form[k]))
            return true;
    return false;
}

/* If several arguments differ, their places matter: tells all. */
static bool tell_arguments(Comparison *c, int i, int meant, const int mine[], int count,
                           const int others[], int missing)
{
    const Form *is = form_by(c, i), *plain = form_at(c, meant);
    const bool all = count > 1 && !is_sum(is) && !form_at(c, mine[0])->is_parameter;
    char name[LINE] = "", takes[LINE] = "", right[LINE] = "";
    Naming naming = any_of_another_layer(c, mine, count) ? WITH_LAYER : SHORT;
    for (bool same = true; same && naming <= WITH_LAYER; naming++) {
        takes[0] = right[0] = '\0';
        append_values(c, all ? is->taken : mine, all ? is->takes : count, naming, takes);
        append_values(c, all ? plain->taken : others, all ? plain->takes : missing, naming, right);
        same = !strcmp(takes, right);
    }
    if (count && form_at(c, mine[0])->is_parameter)
        append(name, LINE, "%s", is->name);
    else
        append_operation(c, is, name);
    const bool swapped = count == 2 && missing == 2 && mine[0] == others[1] && mine[1] == others[0];
    return tell(c, meant,
                swapped
                    ? _("%s at %s takes %s, where the layer takes %s: are the arguments swapped, "
                        "or the names of two parameters?")
                    : _("%s at %s takes %s, where the layer takes %s"),
                name, line_at(c, i), takes, right);
}

/* An operation with weights, in what only the plain program computes, that the rank runs after
 * operation i; or NULL. */
static const Form *needed_before(const Comparison *c, int i, int number)
{
    const Form *form = form_at(c, number), *late = NULL;
    if (form->is_outside || form->by[RANK])
        return NULL;
    for (int k = 0; k < form->takes && !late; k++)
        late = form_at(c, form->taken[k])->is_parameter ? like_after(c, i, form) : NULL;
    for (int k = 0; k < form->takes && !late; k++)
        late = needed_before(c, i, form->taken[k]);
    return late;
}

bool tell_difference(Comparison *c, int i, int meant)
{
    const Form *is = form_by(c, i), *plain = form_at(c, meant);
    int mine[MOST_INPUTS], others[MOST_INPUTS], first;
    const int count = only_in(is, plain, mine), missing = only_in(plain, is, others);
    char name[LINE] = "", right[LINE] = "";
    if (strcmp(is->name, plain->name) != 0) {
        append_operation(c, is, name);
        append_value(c, meant, SHORT, right);
        return tell(c, meant, _("%s at %s is where the layer has %s"), name, line_at(c, i), right);
    }
    if (count == 0 && missing == 0)
        return tell_attribute(c, i, meant);
    if (count == 1 && missing == 1 && leads_to(c, mine[0], others[0], &first))
        return tell_missing(c, i, mine[0], first);
    const Form *late = count == 1 && missing == 1 ? needed_before(c, i, others[0]) : NULL;
    if (late && is_sum(is)) /* it adds something else, so it is not that sum */
        return tell_extra(c, i);
    if (late) {
        append_operation(c, is, name);
        append_operation(c, late, right);
        return tell(c, meant, _("%s at %s comes too early: the layer applies it after %s at %s"),
                    name, line_at(c, i), right, line_of(late->by[RANK]->address));
    }
    return tell_arguments(c, i, meant, mine, count, others, missing);
}

bool tell_extra(Comparison *c, int i)
{
    const Form *is = form_by(c, i);
    char name[LINE] = "", of[LINE] = "";
    for (int k = 0; k < c->count; k++)
        if (c->of[k] != NO_FORM && same_operation(c, form_at(c, c->of[k]), is))
            return true;
    c->extra = *is;
    append_operation(c, is, name);
    const char *line = line_at(c, i);
    const int data = data_of(c, is);
    if (!is_sum(is) && data != NO_FORM && same_operation(c, form_at(c, data), is))
        return tell(c, NO_FORM,
                    _("%s at %s is applied to its own result: the layer applies it once"), name,
                    line);
    append_values(c, is->taken, is_sum(is) ? is->takes : 1, SHORT, of);
    return tell(c, NO_FORM,
                _("%s at %s takes %s and is one too many: the layer has no such operation there"),
                name, line, of);
}

void tell_unmarked(Comparison *c)
{
    char name[LINE], is[64], right[64];
    for (int i = 0; i < c->f.program[RANK].count; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        const TapeOperation *plain = form_by(c, i)->by[PLAIN];
        int dim = 0;
        if (!c->matters[i] || !plain || strcmp(form_by(c, i)->name, "dropout") != 0 ||
            is_move(&c->f, o) || o->output.kind == SHARD ||
            o->output.shape.rank != plain->output.shape.rank ||
            shape_equal(o->output.shape, plain->output.shape))
            continue;
        while (o->output.shape.size[dim] == plain->output.shape.size[dim])
            dim++;
        name[0] = '\0';
        append_operation(c, form_by(c, i), name);
        c->address = c->address ? c->address : o->address;
        const int j = maker_of(c, RANK, i, o->input[0].tensor);
        const TapeOperation *maker = j == NO_FORM ? NULL : &c->f.program[RANK].operation[j];
        if (o->input[0].kind != UNKNOWN && maker && !is_of_kit(c, maker) && !is_pair(maker))
            continue; /* its placement is that function's */
        if (maker && !strcmp(maker->name, "part") && maker->input[0].kind == PARTIAL) {
            tell(c, NO_FORM,
                 _("part at %s takes one term of a sum over the ranks as if it were the sum"),
                 line_at(c, j));
            continue;
        }
        tell(c, NO_FORM,
             _("%s at %s takes %s as a whole tensor, but it is this rank's part of %s: all ranks "
               "draw the mask of the first part. placed(x, shard(%d)) marks a tensor as a part"),
             name, line_at(c, i), shape_text(o->output.shape, is),
             shape_text(plain->output.shape, right), dim);
    }
}
