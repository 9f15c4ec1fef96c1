/* SP: lab 18 sums over tp the gradients of the parameters that each rank applied to its own
 * positions only. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/optional_labs.h"
#include "train/trainer.h"

/* Copies these gradients into `all`, or back. Returns the number of their elements. If `all` is
 * NULL, only counts them. */
static int64_t copy_gradients(const Model *model, Tensor *all, bool back)
{
    int64_t at = 0;
    for (const Parameter *p = model->parameters; p; p = p->next) {
        if (!(p->partial & OVER_TP))
            continue;
        const int64_t count = tensor_count(p->value);
        real *own = reals(p->value->gradient);
        if (all && back)
            kernel_vector_copy(count, reals(all) + at, own);
        else if (all)
            kernel_vector_copy(count, own, reals(all) + at);
        at += count;
    }
    return at;
}

void sum_norms_over_tp(Model *model, Tape *tape)
{
    const int64_t count = copy_gradients(model, NULL, false);
    if (count == 0)
        return;
    backend_range("sum of norms' gradients");
    Tensor *all = tape_tensor(tape, REAL, SHAPE(count), (Placement){UNKNOWN, 0});
    copy_gradients(model, all, false);
    unsigned partial;
    terms_begin(all, &partial, OVER_TP);
    sum_norm_gradients(all, model->mesh);
    all->partial = NULL;
    copy_gradients(model, ready(all), true);
    if (!partial)
        model_gradients_added(model, (Range){0, model->arena_size}, OVER_TP);
    tape_release_value(all);
    backend_range_end();
    span_end(N_("sum of norms' gradients"), true);
}
