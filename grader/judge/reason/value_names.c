/* How the values of two programs are called in a sentence. */
#include "base/language.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/reason/comparison.h"

/* The name of a parameter of the layer, or NULL. */
static const char *name_in_layer(const Comparison *c)
{
    for (int i = 0; i < c->f.plain; i++)
        if (form_at(c, i)->is_parameter)
            return form_at(c, i)->name;
    return NULL;
}

static bool is_in_layer(const Comparison *c, const char *name)
{
    const char *layer = name_in_layer(c);
    return layer && strncmp(name, layer, (size_t)c->layer) == 0;
}

bool is_of_another_layer(const Comparison *c, int number)
{
    return form_at(c, number)->is_parameter && !is_in_layer(c, form_at(c, number)->name);
}

static void append_name(const Comparison *c, const char *name, Naming naming, char *text)
{
    const size_t length = strlen(name);
    const bool is_here = is_in_layer(c, name);
    const char *short_name = is_here && naming != WITH_LAYER ? name + c->layer : name,
               *end = name + length;
    for (int i = 0; i < 2 && naming == SHORT && is_here; i++) {
        const char *ending = i ? ".bias" : ".weight";
        const size_t of_ending = strlen(ending);
        if (length > of_ending && !strcmp(name + length - of_ending, ending))
            end = name + length - of_ending;
    }
    if (end <= short_name)
        end = name + length;
    append(text, LINE, "%.*s", (int)(end - short_name), short_name);
}

/* If this is a parameter, or one of those that are stacked in it: appends its name, "weight[2]". */
static bool append_parameter(const Comparison *c, const Form *form, Naming naming, char *text)
{
    const bool is_one = !form->is_outside && !strcmp(form->name, "take");
    const Form *of = is_one ? form_at(c, form->taken[0]) : form;
    if (!of->is_parameter)
        return false;
    append_name(c, of->name, naming, text);
    if (is_one)
        append(text, LINE, "[%g]", form->attribute[1].number);
    return true;
}

void append_operation(const Comparison *c, const Form *form, char *text)
{
    const TapeOperation *by = form->by[RANK] ? form->by[RANK] : form->by[PLAIN];
    char called[LINE] = "";
    /* first_token() is a take() */
    append(text, LINE, "%s", by && !strcmp(form->name, "take") ? by->name : form->name);
    for (int k = 0; k < form->takes; k++)
        if (append_parameter(c, form_at(c, form->taken[k]), SHORT, called)) {
            append(text, LINE, "(%s)", called);
            return;
        }
    if (!strcmp(form->attribute[0].name, "name"))
        append_name(c, form->attribute[0].text, WITH_KIND, called);
    if (called[0] && strcmp(called, form->name) != 0)
        append(text, LINE, "(%s)", called);
}

int data_of(const Comparison *c, const Form *form)
{
    for (int k = 0; k < form->takes; k++)
        if (!form_at(c, form->taken[k])->is_parameter)
            return form->taken[k];
    return NO_FORM;
}

void append_value(const Comparison *c, int number, Naming naming, char *text)
{
    const Form *form = form_at(c, number);
    const int data = form->is_outside ? NO_FORM : data_of(c, form);
    char operation[LINE] = "";
    if (append_parameter(c, form, naming, text))
        return;
    if (form->is_outside) {
        append(text, LINE, "%s", _(form->name));
        return;
    }
    append_operation(c, form, operation);
    if (!is_sum(form) && data != NO_FORM && form_at(c, data)->is_outside)
        append(text, LINE, _("%s of %s"), operation, _(form_at(c, data)->name));
    else if (!is_sum(form))
        append(text, LINE, "%s", operation);
    for (int k = 0; is_sum(form) && k < form->takes; k++) {
        const Form *term = form_at(c, form->taken[k]);
        append(text, LINE, k > 0 ? " + " : "");
        if (term->is_outside || is_sum(term))
            append_value(c, form->taken[k], naming, text);
        else
            append_operation(c, term, text);
    }
}

void append_placed(const Comparison *c, int number, char *text)
{
    const Form *form = form_at(c, number);
    char value[LINE] = "";
    append_value(c, number, SHORT, value);
    append(text, LINE, form->by[RANK] ? _("%s at %s") : "%s", value,
           form->by[RANK] ? line_of(form->by[RANK]->address) : "");
}

void append_values(const Comparison *c, const int *form, int count, Naming naming, char *text)
{
    char last[LINE] = "", next[LINE];
    for (int k = 0; k < count; k++) {
        const Form *value = form_at(c, form[k]);
        next[0] = '\0';
        if (count > 1 && !value->is_outside && !is_sum(value))
            append_operation(c, value, next);
        else
            append_value(c, form[k], naming, next);
        if (strcmp(last, next) != 0 || !value->is_parameter)
            append(text, LINE, "%s%s", k > 0 ? ", " : "", next);
        snprintf(last, sizeof last, "%s", next);
    }
}

int added_to(const Form *sum, int from)
{
    int other = NO_FORM;
    for (int k = 0; k < sum->takes; k++)
        if (sum->taken[k] != from)
            other = sum->taken[k];
    return other;
}
