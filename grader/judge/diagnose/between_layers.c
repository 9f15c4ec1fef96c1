/* Errors that follow from other errors: in one of two layers, in a step after wrong gradients, in
 * the whole model. */
#include "grader/judge/diagnose/evidence.h"

/* Are all outputs of this layer right? */
static bool layer_is_right(const Trial *t, int layer)
{
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));)
        if (want->kind == VALUES && want->check == FORWARD && want->label.of == A_LAYER &&
            want->label.what == OUTPUT_OF && want->label.index == layer &&
            !is_right_on_rank(t, want))
            return false;
    return true;
}

/* Is one of two layers right, while the lab has variables that both share? */
bool shared_by_layers(const Evidence *e)
{
    const Trial *t = e->trial;
    const int of = e->want->label.of;
    if (!t->result->variables[0] || (of != A_LAYER && of != A_PARAMETER))
        return false;
    const bool first = layer_is_right(t, 0), second = layer_is_right(t, 1);
    const Entry *step_1 =
        find_entry(t->expected.all, VALUES, label_of(OUTPUT_OF, A_LAYER, first, 0));
    if (first == second ||
        is_right_on_rank(t, step_1)) /* right in step 1: something may be kept between steps */
        return false;
    return says(e,
                first ? _("the first layer is right and the second, made after it, is wrong: both "
                          "use %s, a static or file-scope variable. Keep what belongs to a layer "
                          "in its struct")
                      : _("the first layer is wrong and the second, made after it, is right: both "
                          "use %s, a static or file-scope variable. Keep what belongs to a layer "
                          "in its struct"),
                t->result->variables);
}

bool follows_wrong_gradient(const Trial *t, const Entry *want)
{
    Label label = want->label;
    label.what = GRADIENT_OF;
    const Entry *gradient = find_entry(t->expected.all, VALUES, label);
    return want->check == STEP && gradient && !is_right_on_rank(t, gradient);
}

bool step_of_wrong_gradient(const Evidence *e)
{
    return follows_wrong_gradient(e->trial, e->want) &&
           says(e, _("the step follows a wrong gradient: look at the weight gradient first"));
}

bool after_wrong_gradients(const Evidence *e)
{
    const LabResult *result = e->trial->result;
    const bool sums = e->want->label.what == LOSS_OF || e->want->label.of == THE_NORM;
    if (e->want->check != LAYOUT)
        return false;
    if (sums && metrics_come_first(result))
        return says(e, _("the sums over the stages are wrong already, so look at metrics first"));
    return result->check[GRADIENT].failed &&
           says(e, _("the mean of the gradients is wrong already, so look at that check first"));
}
