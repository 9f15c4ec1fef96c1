/* Lab 19: checks what the ranks multiply and keep, and whether recomputation changes gradients. */
#include "grader/labs/segments.h"
#include "grader/labs/work.h"

#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/judge/reason/recorded_values.h"

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

/* ---- what the lab's functions call ----------------------------------------------------------------------------- */

/* What a function of the lab has called for one call of a segment, and the function itself, which
 * the record has last. */
typedef struct CallOfLab {
    const TapeOperation *first, *function; /* [first, function) */
} CallOfLab;

/* The last call of a function of the kit, or NULL. */
static const TapeOperation *last_call(const CallOfLab *c, const char *name)
{
    for (const TapeOperation *o = c->function; o-- > c->first;)
        if (!strcmp(o->name, name))
            return o;
    return NULL;
}

/* The call that returned this tensor, or NULL. */
static const TapeOperation *returned_by(const CallOfLab *c, const TapeTensor *tensor)
{
    for (const TapeOperation *o = c->first; o < c->function; o++)
        if (o->output.tensor == tensor->tensor)
            return o;
    return NULL;
}

/* Were the numbers of two tensors recorded, and are they the same, or others? */
static bool recorded_as(const TapeTensor *a, const TapeTensor *b, bool same)
{
    return a && b && a->size >= 0 && b->size >= 0 &&
           is_sum_of(a->sum, b->sum, fmax(a->size, b->size)) == same;
}

static bool differ(const TapeTensor *is, const TapeTensor *right)
{
    return recorded_as(is, right, false);
}

/* What a function of the lab was given, and the result of its run of the segment; or NULL. */
typedef struct Given {
    const TapeTensor *x, *dy, *y;
} Given;

/* How a wrong tensor is called. */
static const char *name_of(const TapeTensor *is, const TapeTensor *due, const Given *given,
                           char text[96])
{
    const double factor = is->sum[0] / due->sum[0];
    const bool is_multiple = fabs(is->sum[1] / due->sum[1] - factor) < 1e-4 * fabs(factor);
    snprintf(text, 96, is_multiple ? _("%.4g times that") : _("another tensor"), factor);
    return recorded_as(is, given->x, true)    ? "x"
           : recorded_as(is, given->dy, true) ? "dy"
           : recorded_as(is, given->y, true)  ? _("the segment's result")
                                              : text;
}

static bool takes_others(const Evidence *e, const TapeOperation *o, int argument,
                         const TapeTensor *due, const char *name, const Given *given)
{
    char text[96];
    const TapeTensor *is = &o->input[argument];
    return differ(is, due) && says(e, _("%s at %s must take %s, and takes %s"), o->name,
                                   line_of(o->address), name, name_of(is, due, given, text));
}

static bool returns_another(const Evidence *e, const CallOfLab *c, const TapeOperation *from,
                            const Given *given)
{
    char text[96];
    const TapeTensor *is = &c->function->output;
    if (differ(is, &from->output) && is->tensor == from->output.tensor)
        return says(e, _("%s must return the result of %s at %s as it is, and has changed it"),
                    c->function->name, from->name, line_of(from->address));
    return differ(is, &from->output) &&
           says(e, _("%s must return the result of %s at %s, and returns %s"), c->function->name,
                from->name, line_of(from->address), name_of(is, &from->output, given, text));
}

static bool forward_is_another(const Evidence *e, const CallOfLab *c)
{
    const TapeOperation *f = c->function, *values = last_call(c, "segment_values"),
                        *run = values ? values : last_call(c, "segment_run");
    const Given given = {.x = &f->input[0]};
    const CallOfLab before = {c->first, run ? run : f};
    const TapeOperation *once = last_call(&before, "segment_values");
    if (run && once)
        return says(e, _("%s runs the segment at %s and again at %s: once is enough"), f->name,
                    line_of(once->address), line_of(run->address));
    return !run ? says(e, _("%s does not run the segment"), f->name)
                : takes_others(e, run, 0, given.x, "x", &given) ||
                      returns_another(e, c, run, &given);
}

static bool backward_is_another(const Evidence *e, const CallOfLab *c)
{
    const TapeOperation *f = c->function, *back = last_call(c, "segment_backward"),
                        *run = back ? returned_by(c, &back->input[0]) : NULL,
                        *leaf = run ? returned_by(c, &run->input[0]) : NULL,
                        *gradient = last_call(c, "leaf_gradient");
    const Given given = {&f->input[0], &f->input[1], back ? &back->input[0] : NULL};
    char text[96];
    if (!back)
        return says(e,
                    _("%s does not call segment_backward(): dy must flow back through a second "
                      "run of the segment, to a leaf made from x"),
                    f->name);
    const CallOfLab before = {c->first, back};
    const TapeOperation *once = last_call(&before, "segment_backward");
    if (once)
        return says(e, _("%s calls segment_backward at %s and again at %s: once is enough"),
                    f->name, line_of(once->address), line_of(back->address));
    if (run && strcmp(run->name, "segment_run") != 0)
        return says(e,
                    _("%s at %s must take the result of segment_run, and takes that of %s at %s"),
                    back->name, line_of(back->address), run->name, line_of(run->address));
    if (leaf && strcmp(leaf->name, "leaf") != 0)
        return says(e, _("%s at %s runs the segment on the result of %s at %s: run it on leaf(x)"),
                    run->name, line_of(run->address), leaf->name, line_of(leaf->address));
    if ((leaf && takes_others(e, leaf, 0, given.x, "x", &given)) ||
        takes_others(e, back, 1, given.dy, "dy", &given))
        return true;
    return gradient ? returns_another(e, c, gradient, &given)
                    : says(e, _("%s must return leaf_gradient() of its leaf, and returns %s"),
                           f->name, name_of(&f->output, given.dy, &given, text));
}

/* Do the functions of the lab call something else, or take or return other numbers, than they
 * should? The first such call of a segment in this step is told. */
static bool calls_are_others(const Evidence *e)
{
    const Trial *t = e->trial;
    const RankCalls *mine = t->outcome->calls ? &t->outcome->calls->rank[t->rank] : NULL;
    CallOfLab c = {0};
    for (int64_t i = 0; mine && i < mine->operations_count && e->want->label.step != DIVERGED;
         i++) {
        const TapeOperation *o = &mine->operation[i];
        const bool backward = !strcmp(o->name, "recompute_backward");
        if (!c.first || !label_equal(&o->where, &c.first->where))
            c.first = o;
        c.function = o;
        if (!backward && strcmp(o->name, "recompute_forward") != 0)
            continue;
        if (o->where.step == e->want->label.step &&
            (backward ? e->want->check != FORWARD && backward_is_another(e, &c)
                      : forward_is_another(e, &c)))
            return true;
        c.first = o + 1;
    }
    return false;
}

Finder *const segments_reasons[] = {input_altered, calls_are_others, not_a_number, NULL};
