/* Lab 19: checks what the ranks multiply and keep, and whether recomputation changes gradients. */
#include "grader/labs/segments.h"
#include "grader/labs/work.h"

#include <math.h>

#include "grader/judge/diagnose/evidence.h"

/* Right answers take at most the memory that the judge takes on its one rank, plus the inputs and
 * results of communication. Buffers are rounded up (`small`). */
static const double slack = 1.1, small = 64;

/* Does the busiest rank multiply too much in this backward pass, by as much as a forward run of all
 * segments takes? */
static bool is_one_run_more(const Trial *t, const Entry *want)
{
    Busiest b;
    Label forward = want->label;
    forward.what = FORWARD_OF;
    const Entry *run = find_entry(t->expected.all, WORK, forward);
    if (!run || !busiest(t, want->label, LINEAR_WORK, &b))
        return false;
    const double more = t->c->tp * b.most - numbers_of(want)[LINEAR_WORK];
    return fabs(more - numbers_of(run)[LINEAR_WORK]) < 0.5;
}

void compare_work_of_segments(Trial *t, const Entry *want)
{
    const bool backward = want->label.what == BACKWARD_OF;
    compare_products_of_share(
        t, want,
        !backward ? _("rank %d did %.2f times the multiplications needed: a forward pass must "
                      "run each call of a segment once, and the second run belongs in "
                      "recompute_backward\n%s (%s)")
        : is_one_run_more(t, want)
            ? _("rank %d did %.2f times the multiplications needed, and the excess is one more "
                "forward run of each call: a backward pass must run each call of a segment "
                "forward once, and backward once\n%s (%s)")
            : _("rank %d did %.2f times the multiplications needed: a backward pass "
                "must run each call of a segment forward once, and backward once\n%s (%s)"));
    compare_most(
        t, want, KEPT, t->result->lab->kept(t->c, &want->label),
        want->label.step == STEPS
            ? _("rank %d keeps %.0f numbers in a forward pass that no backward pass follows, but "
                "%.0f suffice: the result of each call\n%s (%s)")
        : backward
            ? _("rank %d keeps %.0f numbers after the backward pass, but %.0f suffice: the "
                "gradient of x\n%s (%s)")
            : _("rank %d keeps %.0f numbers from the forward pass to the backward pass, but %.0f "
                "suffice: the input of each call. segment_run keeps all that its backward pass "
                "reads, segment_values nothing\n%s (%s)"));
    compare_most(t, want, TAKEN,
                 slack * numbers_of(want)[TAKEN] + 2.0 * t->c->B * t->c->S * t->c->H + small,
                 _("rank %d allocated %.0f numbers where %.0f suffice: the input of each call, "
                   "and all that one run of a segment needs\n%s (%s)"));
}

/* ---- bit for bit ----------------------------------------------------------------------------------------------- */

/* Every NaN is the same. */
static uint64_t bits_of(double number)
{
    uint64_t bits;
    number = isnan(number) ? (double)NAN : number;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

void compare_bits(Trial *t, const Entry *got, const Entry *want)
{
    if (want->kind != VALUES || !is_right_on_rank(t, want))
        return;
    Label without = want->label;
    without.detail = 1;
    const Entry *plain = want->check == FORWARD || want->label.detail
                             ? NULL
                             : entry_of_rank(t, t->rank, VALUES, without);
    int64_t differ = 0, first = 0;
    char at[96];
    if (!plain || plain->count != got->count)
        return;
    for (int64_t i = got->count - 1; i >= 0; i--)
        if (bits_of(numbers_of(got)[i]) != bits_of(numbers_of(plain)[i])) {
            differ++;
            first = i;
        }
    if (differ > 0)
        fail(t, (Check)want->check, EXPLAINED,
             _("numbers that differ in their last bits from those without recomputation: %lld of "
               "%lld. The second run must repeat the first exactly, with the same x, and nothing "
               "may change the gradients of that run\n%s on rank %d (%s): element %s is %.9g, and "
               "%.9g without recomputation"),
             (long long)differ, (long long)got->count, entry_text(want), t->rank, t->sizes,
             address_text(got, first, at), numbers_of(got)[first], numbers_of(plain)[first]);
}

/* ---- what wrong gradients show --------------------------------------------------------------------------------- */

static bool no_backward_of_segment(const Evidence *e)
{
    const Check check = (Check)e->want->check;
    if (check == FORWARD || e->count == 0 || e->zeros < e->count)
        return false;
    return says(
        e,
        check == INPUT_GRADIENT
            ? _("it is zero everywhere: dy must flow back through the second run, to the leaf whose gradient you return")
            : _("it is zero everywhere: no backward pass has reached this parameter. "
                "segment_backward adds to the gradients of the parameters that "
                "segment_run used"));
}

/* How many calls this gradient has passed through, if one after the other; else 0. */
static int calls_passed(const Evidence *e)
{
    const Label *l = &e->want->label;
    int call = l->index;
    const bool of_call = l->of == A_SEGMENT && call >= 0;
    if (e->c->kind != SEGMENT_BLOCKS || (!of_call && sscanf(l->name, "blocks.%d.", &call) != 1))
        return 0;
    return segment_calls(e->c) - call;
}

/* If each call scales the gradient wrongly, the factor grows with the number of calls that the
 * gradient has passed through. A wrong factor in one call alone is for multiple(). */
static bool multiplied_by_calls(const Evidence *e)
{
    const int tp = e->c->tp;
    const struct {
        double factor;
        const char *says;
    } factors[] = {
        {2, tp == 2
                ? N_("it is %g times the expected value, a factor of 2 in each call that it went "
                     "through: it is counted twice, or summed over the ranks although it was "
                     "already complete")
                : N_("it is %g times the expected value, a factor of 2 in each call that it went "
                     "through: it is counted twice")},
        {0.5, N_("it is %g times the expected value, halved in each call that it went through")},
    };
    if (e->want->check == FORWARD)
        return false;
    /* A parameter's gradient leaves its own call before that call scales the gradient of x. */
    const int last = calls_passed(e), first = e->want->label.of == A_SEGMENT ? last : last - 1;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        for (int calls = first > 2 ? first : 2; calls <= last; calls++) {
            const double factor = pow(factors[i].factor, calls);
            if (factor != 1 && close_to(e->is, e->right, factor, e->count, e->tolerance))
                return says(e, _(factors[i].says), factor);
        }
    return false;
}

Finder *const segments_reasons[] = {input_altered, not_a_number, no_backward_of_segment,
                                    multiplied_by_calls, NULL};
