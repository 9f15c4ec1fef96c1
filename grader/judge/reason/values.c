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

/* "first.up.weight" of the first layer is "up" and, in full, "up.weight". */
static void append_name(const Comparison *c, const char *name, bool in_full, char *text)
{
    const char *layer = name_in_layer(c);
    const size_t begin = (size_t)c->layer, length = strlen(name);
    const char *short_name = layer && strncmp(name, layer, begin) == 0 ? name + begin : name,
               *end = name + length;
    for (int i = 0; i < 2 && !in_full; i++) {
        const char *ending = i ? ".bias" : ".weight";
        const size_t of_ending = strlen(ending);
        if (length > of_ending && !strcmp(name + length - of_ending, ending))
            end = name + length - of_ending;
    }
    if (end <= short_name)
        end = name + length;
    append(text, LINE, "%.*s", (int)(end - short_name), short_name);
}

void append_operation(const Comparison *c, const Form *form, char *text)
{
    const TapeOperation *by = form->by[RANK] ? form->by[RANK] : form->by[PLAIN];
    const bool is_as_called =
        by && strcmp(by->name, "gelu and dropout") != 0 && strcmp(by->name, "linear") != 0;
    char called[LINE] = "";
    append(text, LINE, "%s", is_as_called ? by->name : form->name);
    for (int k = 0; k < form->takes; k++) {
        const Form *taken = form_at(c, form->taken[k]);
        if (!taken->is_parameter)
            continue;
        append(text, LINE, "(");
        append_name(c, taken->name, false, text);
        append(text, LINE, ")");
        return;
    }
    if (!strcmp(form->attribute[0].name, "name"))
        append_name(c, form->attribute[0].text, true, called);
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

void append_value(const Comparison *c, int number, bool in_full, char *text)
{
    const Form *form = form_at(c, number);
    const int data = form->is_outside ? NO_FORM : data_of(c, form);
    char operation[LINE] = "";
    if (form->is_parameter)
        append_name(c, form->name, in_full, text);
    else if (form->is_outside)
        append(text, LINE, "%s", _(form->name));
    if (form->is_outside)
        return;
    append_operation(c, form, operation);
    if (!is_sum(form) && data != NO_FORM && form_at(c, data)->is_outside)
        append(text, LINE, _("%s of %s"), operation, _(form_at(c, data)->name));
    else if (!is_sum(form))
        append(text, LINE, "%s", operation);
    for (int k = 0; is_sum(form) && k < form->takes; k++) {
        const Form *term = form_at(c, form->taken[k]);
        append(text, LINE, k > 0 ? " + " : "");
        if (term->is_outside || is_sum(term))
            append_value(c, form->taken[k], in_full, text);
        else
            append_operation(c, term, text);
    }
}

void append_placed(const Comparison *c, int number, char *text)
{
    const Form *form = form_at(c, number);
    char value[LINE] = "";
    append_value(c, number, false, value);
    append(text, LINE, form->by[RANK] ? _("%s at %s") : "%s", value,
           form->by[RANK] ? line_of(form->by[RANK]->address) : "");
}

void append_values(const Comparison *c, const int *form, int count, bool in_full, char *text)
{
    char last[LINE] = "", next[LINE];
    for (int k = 0; k < count; k++) {
        const Form *value = form_at(c, form[k]);
        next[0] = '\0';
        if (count > 1 && !value->is_outside && !is_sum(value))
            append_operation(c, value, next);
        else
            append_value(c, form[k], in_full, next);
        if (strcmp(last, next) != 0 || !value->is_parameter)
            append(text, LINE, "%s%s", k > 0 ? ", " : "", next);
        snprintf(last, sizeof last, "%s", next);
    }
}

void append_missing(const Comparison *c, int missing, int from, char *text)
{
    const Form *form = form_at(c, missing);
    char of[LINE] = "", operation[LINE] = "";
    append_operation(c, form, operation);
    for (int k = 0; is_sum(form) && k < form->takes; k++)
        if (form->taken[k] != from)
            append_value(c, form->taken[k], false, of);
    append(text, LINE, of[0] ? _("%s of %s") : "%s", operation, of);
}
