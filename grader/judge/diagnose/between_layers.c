/* Errors that follow from other errors: in one of two layers, in a step after wrong gradients, in
 * the whole model. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/diagnose/evidence.h"

bool follows_wrong_gradient(const Trial *t, const Entry *want)
{
    Label label = want->label;
    label.what = GRADIENT_OF;
    const Entry *gradient = find_entry(t->expected.all, VALUES, label);
    return want->check == STEP && gradient && !is_right_on_rank(t, gradient);
}

const double *past_the_layer(Trial *t, const Entry *want)
{
    const Entry *past = NULL;
    if (want->check == INPUT_GRADIENT && kind_of_case(t->c)->facts & X_IS_USED_TWICE)
        past = find_entry(computed(t, &t->past, PAST_THE_LAYER)->all, VALUES, want->label);
    return past ? numbers_of(past) : NULL;
}

/* Would the numbers be right without a factor in what the layer adds to the gradient of x? */
bool layer_gradient_is_scaled(const Evidence *e)
{
    const double *past = past_the_layer(e->trial, e->want);
    double *of_layer = past ? malloc(2 * (size_t)e->count * sizeof *of_layer + 1) : NULL;
    bool has_past = false, has_layer = false;
    for (int64_t i = 0; of_layer && i < e->count; i++) {
        const double beside = past[global_index(e->got, i)];
        of_layer[i] = e->is[i] - beside;
        of_layer[e->count + i] = e->right[i] - beside;
        has_past = has_past || beside != 0;
        has_layer = has_layer || fabs(of_layer[i]) > e->tolerance;
    }
    char why[600];
    Evidence part = *e;
    part.is = of_layer;
    part.right = of_layer + e->count;
    part.text = why;
    part.size = sizeof why;
    const bool found = has_past && has_layer && (multiple(&part) || scaled(&part));
    free(of_layer);
    return found && says(e,
                         _("x is used twice in this case, and the gradient that comes through the "
                           "layer is wrong: %s"),
                         why);
}

/* Is an output of the same layer wrong in this step or an earlier one? */
bool after_wrong_forward(const Evidence *e)
{
    const Label l = e->want->label;
    const int check = e->want->check;
    if ((check != INPUT_GRADIENT && check != WEIGHT_GRADIENT && check != STEP) ||
        !alike_on_ranks(e->c))
        return false;
    for (const Entry *want = NULL; (want = next_entry(e->trial->expected.all, want));)
        if (want->kind == VALUES && want->check == FORWARD && want->label.what == OUTPUT_OF &&
            want->label.step <= l.step && layer_of(&want->label) == layer_of(&l) &&
            !is_right_on_rank(e->trial, want))
            return says(e,
                        _("the forward pass is already wrong in this case, so look there first"));
    return false;
}

const char follows_gradient[] =
    N_("the step follows a wrong gradient: look at the weight gradient first");

bool step_of_wrong_gradient(const Evidence *e)
{
    return follows_wrong_gradient(e->trial, e->want) && says(e, "%s", _(follows_gradient));
}

bool after_wrong_gradients(const Evidence *e)
{
    const LabResult *result = e->trial->result;
    return e->want->check == LAYOUT && result->check[GRADIENT].failed &&
           says(e, _("the mean of the gradients is already wrong, so look at that check first"));
}
