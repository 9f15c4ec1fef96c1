/* Mistakes that the numbers alone reveal. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "grader/judge/diagnose/contributions.h"
#include "grader/judge/reason/numbering.h"
#include "grader/labs/f_and_g.h"
#include "grader/labs/groups.h"
#include "grader/labs/work.h"

bool says(const Evidence *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, e->size, format, args);
    va_end(args);
    return true;
}

double error_of(double is, double right)
{
    const double error = fabs(is - right);
    return is == right || (isnan(is) && !isfinite(right)) ? 0 : isnan(error) ? INFINITY : error;
}

double error_in(const Entry *want, double is, double right)
{
    return want->label.step == DIVERGED && isnan(is) ? 0 : error_of(is, right);
}

bool close_to(const double *a, const double *b, double factor, int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(error_of(a[i], factor * b[i]) <= tolerance * fmax(1, fabs(factor))))
            return false;
    return true;
}

/* Is x a mark of a buffer in flight? Sums and products keep the bits of a mark, except its sign. */
static bool is_under_way(double x)
{
    const union {
        uint32_t bits;
        float number;
    } mark = {UNDER_WAY};
    const double wide = copysign((double)mark.number, 1), positive = copysign(x, 1);
    uint64_t bits[2];
    memcpy(&bits[0], &wide, sizeof wide);
    memcpy(&bits[1], &positive, sizeof positive);
    return bits[0] == bits[1];
}

/* Did the lab replace NaN or infinity by a number? In what a layer computes, nothing else may be
 * wrong. */
bool nan_is_hidden(const Evidence *e)
{
    const bool of_layer = e->want->check == FORWARD || e->want->check == INPUT_GRADIENT;
    bool hides = false;
    for (int64_t i = 0; i < e->count; i++) {
        const bool hidden = !isfinite(e->right[i]) && isfinite(e->is[i]);
        if (of_layer && !hidden && !is_right(e, i))
            return false;
        hides = hides || hidden;
    }
    return hides &&
           says(e, _("NaN or infinity went in, but a number came out: a sum, a mean or a step with "
                     "it must keep it, so that every rank learns that the training diverges"));
}

static bool is_finite_tensor(const TapeTensor *x)
{
    return x->size < 0 || (isfinite(x->sum[0]) && isfinite(x->sum[1]));
}

static const char *const of_nan =
    N_("the result contains NaN. It may come from 0 divided by 0, from a logarithm or a root of a "
       "negative number, from an earlier step, or from memory that was not written yet or already "
       "freed (SAN=1 finds the line)");

/* Names the first operation of this step that makes a NaN or an infinite value of finite numbers. */
static bool made_by_operation(const Evidence *e)
{
    static const Forms none;
    const Calls *calls = e->trial->outcome->calls;
    const RankCalls *mine = calls ? &calls->rank[e->trial->rank] : NULL;
    for (int64_t i = 0; mine && i < mine->operations_count; i++) {
        const TapeOperation *o = &mine->operation[i];
        bool finite = !o->back && o->where.step == e->want->label.step && line_of(o->address)[0];
        for (int k = 0; k < o->inputs && finite; k++)
            finite = o->input[k].size >= 0 && is_finite_tensor(&o->input[k]);
        if (!finite || o->inputs == 0 || is_finite_tensor(&o->output))
            continue;
        says(e,
             _("%s at %s makes a NaN or an infinite value of finite numbers: the first one of this "
               "step"),
             o->name, line_of(o->address));
        if (is_move(&none, o)) /* a pair that a lab has written, in some of its lines */
            append(e->text, e->size, "\n%s", _(of_nan));
        return true;
    }
    return false;
}

bool not_a_number(const Evidence *e)
{
    for (int64_t i = 0; i < e->count; i++)
        if (!isfinite(e->is[i]) && isfinite(e->right[i]) && !is_under_way(e->is[i]) &&
            made_by_operation(e))
            return true;
    for (int64_t i = 0; i < e->count; i++)
        if (isinf(e->is[i]) && !isinf(e->right[i])) {
            return says(e, _("the result contains infinite values: something was divided by zero, "
                             "a logarithm of 0 was taken, or it grew without bound"));
        } else if (isnan(e->is[i]) && !isnan(e->right[i]))
            return says(e, is_under_way(e->is[i])
                               ? _("a buffer was read before the message or the sum that fills it "
                                   "was complete: wait for it first (pending_wait, MPI_Wait)")
                               : _(of_nan));
    return false;
}

/* The runner writes a layer's input after the forward pass, so a wrong input was altered. */
bool input_altered(const Evidence *e)
{
    bool mask = e->want->label.what == MASK_OF;
    const bool of_function = e->want->label.of == OF_VOCABULARY;
    if ((!mask && e->want->label.what != INPUT_OF) ||
        (e->want->label.of != A_LAYER && !of_function))
        return false;
    if (of_function)
        return says(e, _("the function altered its input; another operation still needs the old "
                         "values"));
    return says(
        e, mask ? _("the layer altered its mask; another operation still needs the old values")
                : _("the layer altered its input; another operation still needs the old values"));
}

/* Is this gradient zero here, but not on another rank, which has used the parameter? */
static bool used_on_another_rank(const Evidence *e)
{
    const Trial *t = e->trial;
    for (int rank = 0; rank < t->c->tp && e->got->placement_kind != SHARD; rank++) {
        const Entry *other = entry_of_rank(t, rank, VALUES, e->want->label);
        for (int64_t i = 0; rank != t->rank && other && i < other->count; i++)
            if (numbers_of(other)[i] != 0)
                return says(e,
                            _("it is zero on rank %d, but not on rank %d: the ranks do not compute "
                              "the same values. A parameter that all ranks hold must be used on "
                              "every rank (a bias: after the sum)"),
                            t->rank, rank);
    }
    return false;
}

bool nothing_flowed_back(const Evidence *e)
{
    if (e->want->check == FORWARD || e->count == 0 || e->zeros < e->count)
        return false;
    if (e->want->check == METRICS || e->want->label.of == AN_OPERATION ||
        e->want->label.what == OUTPUT_OF)
        return says(e, _("it is zero everywhere"));
    if (e->trial->result->lab->over_replicas && replicas_of(e->c) > 1)
        return says(
            e, _("it is zero everywhere: a quotient such as 1 / mesh->dp_degree is 0 when both are "
                 "integers"));
    if (e->trial->result->lab->over_stages)
        return says(
            e, _("it is zero everywhere: the next stage sent zeros, or no gradient, or this stage "
                 "did not call stage_run_backward"));
    if (e->trial->result->check[FORWARD].failed)
        return says(
            e, _("it is zero everywhere; the forward pass is already wrong, so look there first"));
    if (kind_of_case(e->c)->facts & SHARDS_OF_POSITIONS)
        return says(e,
                    _("it is zero everywhere: no gradient flowed back. A group_... or ..._forward "
                      "function gives values only, and so does tensor_copy(); gather_sequence and "
                      "reduce_scatter_sequence are on the tape"));
    return used_on_another_rank(e) || parameter_not_read(e) || leaves_the_tape(e) ||
           says(e, _("it is zero everywhere: no gradient flowed back. A group_... function gives "
                     "values only, and so does tensor_copy(); duplication, all_reduce and "
                     "all_gather are on the tape"));
}

/* The factor that best turns the expected numbers into the rank's, by least squares. */
static double factor_between(const Evidence *e)
{
    double both = 0, right = 0;
    for (int64_t i = 0; i < e->count; i++) {
        both += e->is[i] * e->right[i];
        right += e->right[i] * e->right[i];
    }
    return right > 0 ? both / right : 1;
}

/* Is every wrong output of this rank the expected one times this factor? One output alone may
 * mislead, because a rank's part of a sum may be zero there. */
static bool holds_for_outputs(const Evidence *e, double factor)
{
    const Trial *t = e->trial;
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));) {
        const Entry *got = want->kind == VALUES && want->label.of == A_LAYER &&
                                   want->label.what == OUTPUT_OF && want->check == e->want->check
                               ? entry_of_rank(t, t->rank, VALUES, want->label)
                               : NULL;
        if (got && has_numbers(got, want) && !is_right_on_rank(t, want) &&
            !close_to(numbers_of(got), numbers_of(want), factor, want->count,
                      tolerance_of(&t->expected, want)))
            return false;
    }
    return true;
}

/* Does a sum include more than `ranks` ranks, in passes of this direction (0: in any pass)? */
static bool sums_beyond(const Evidence *e, int ranks, What pass)
{
    const Calls *calls = e->trial->outcome->calls;
    for (int rank = 0; calls && rank < e->c->world; rank++)
        for (int64_t i = 0; i < calls->rank[rank].count; i++) {
            const Call *call = &calls->rank[rank].call[i];
            if (call->rule == REDUCTION && __builtin_popcountll(call->members) > ranks &&
                (!pass || call->where.what == (int)pass))
                return true;
        }
    return false;
}

/* Is the tensor a constant times the expected one? */
bool multiple(const Evidence *e)
{
    const Case *c = e->c;
    const Lab *lab = e->trial->result->lab;
    const bool of_replicas =
        lab->over_replicas || (lab->over_stages && lab_points(lab, GROUPS)); /* lab 14 */
    const double replicas = of_replicas ? replicas_of(c) : 1, micros = c->micros ? c->micros : 1;
    const bool output = e->want->label.what == OUTPUT_OF, copy = is_operation(e->want, F) && output,
               sums = sums_beyond(e, 1, output ? FORWARD_PASS_OF : BACKWARD_PASS_OF) &&
                      (e->has_note || !alike_on_ranks(c) ||
                       lab->has_replicas); /* a layer's f and g leave a note */
    const struct {
        double factor;
        const char *says;
    } factors[] = {
        {c->tp,
         copy    ? N_("it is %g times the expected value: duplication (f) copies in the forward "
                         "pass and sums in the backward pass; check which of f and g communicates "
                         "in which direction")
         : !sums ? N_("it is %g times the expected value: it is counted once for each rank")
                 : N_("it is %g times the expected value, once for each rank, as if summed over "
                      "the ranks although it was already complete")},
        {1.0 / c->tp,
         c->tp == c->world
             ? N_("it is %g times the expected value, as if divided by the number of ranks")
             : N_("it is %g times the expected value, as if divided by the number of ranks of a tp "
                  "group")},
        {1.0 / micros, N_("it is %g times the expected value: it is divided by the number of "
                          "micro-batches, but the loss is already divided by the rows of the "
                          "whole batch")},
        {c->B == replicas_of(c) || c->B == c->world ? 1 : 1.0 / c->B,
         N_("it is %g times the expected value, as if a mean over the batch of B texts were taken "
            "once too often")},
        {1.0 / replicas, N_("it is %g times the expected value: it is divided by the number of "
                            "replicas once too often")},
        {2, N_("it is %g times the expected value, as if it were counted twice")},
        {0.5, N_("it is %g times the expected value: it is halved")},
        {-1, N_("it is %g times the expected value: the sign is wrong")},
    };
    enum { FACTORS = sizeof factors / sizeof *factors, WITHOUT_CAUSE = 3 /* the last ones */ };
    for (size_t i = 0; i < FACTORS; i++) {
        const double factor = factors[i].factor;
        if (factor == 1 || !isfinite(factor) ||
            !close_to(e->is, e->right, factor, e->count, e->tolerance) ||
            !holds_for_outputs(e, factor))
            continue;
        const bool either = !e->has_note && c->tp == replicas_of(c) && c->tp > 1 &&
                            (factor == c->tp || factor == 1.0 / c->tp);
        char name[100] = "";
        e->trial->explained_as = either                         ? UNEXPLAINED
                                 : i >= FACTORS - WITHOUT_CAUSE ? WITH_PATTERN
                                                                : EXPLAINED;
        if (either) /* ranks or replicas: a case in which these are not as many tells */
            name_number(c, factor < 1 ? 1 / factor : factor, name);
        return either ? says(e, _("it is %g times the expected value%s"), factor, name)
                      : says(e, _(factors[i].says), factor);
    }
    return false;
}

double constant_factor(const Evidence *e)
{
    const double factor = factor_between(e);
    return fabs(factor - 1) * e->most_right >= 8 * e->tolerance &&
                   fabs(factor) * e->most_right >= 8 * e->tolerance && /* not just small */
                   close_to(e->is, e->right, factor, e->count, e->tolerance)
               ? factor
               : 1;
}

/* Is the tensor scaled by a factor that has no better explanation? */
bool scaled(const Evidence *e)
{
    const double factor = constant_factor(e);
    if (e->count < 3 || factor == 1)
        return false;
    if (factor == 0)
        return says(e, _("it is zero everywhere"));
    e->trial->explained_as = WITH_PATTERN;
    return says(
        e,
        _("every number is %.6g times its expected value: a constant factor is wrong or missing"),
        factor);
}

bool gives(const Evidence *e, const double *whole)
{
    for (int64_t i = 0; i < e->count; i++) {
        const double right = whole[global_index(e->got, i)];
        if (!(error_of(e->is[i], right) <= 4 * e->tolerance))
            return false;
    }
    return true;
}

/* Is a shard the sum of all ranks' parts, although these are different elements? */
bool added_up_over_ranks(const Evidence *e)
{
    int64_t held = e->got->end - e->got->begin,
            all = e->want->shape.size[e->got->placement_dim & 3];
    if (e->c->tp == 1 || e->got->placement_kind != SHARD || held * e->c->tp != all)
        return false;
    for (int64_t i = 0; i < e->count; i++) {
        Entry part = *e->got;
        double sum = 0;
        for (part.begin = 0, part.end = held; part.end <= all; part.begin += held, part.end += held)
            sum += numbers_of(e->want)[global_index(&part, i)];
        if (!(fabs(e->is[i] - sum) <= 4 * e->tolerance))
            return false;
    }
    return after_wrong_forward(e) ||
           says(e, e->want->label.of == A_PARAMETER
                       ? _("the parts of different ranks were added, but they are different "
                           "elements of the parameter")
                       : _("the parts of different ranks were added, but they are different "
                           "elements of the whole"));
}

static int64_t times_in(const double *numbers, int64_t count, double number, double tolerance)
{
    int64_t times = 0;
    for (int64_t i = 0; i < count; i++)
        times += fabs(numbers[i] - number) <= tolerance;
    return times;
}

/* Are all the right numbers there, but in different places? A number that occurs more often than it
 * should is not just misplaced. A number that is nearly right is in its place. */
bool same_numbers_elsewhere(const Evidence *e)
{
    const double near = 2 * e->tolerance;
    int64_t zeros = 0; /* more than expected */
    if (e->count < 4 || e->count > 4096 || e->error <= near)
        return false;
    for (int64_t i = 0; i < e->count; i++)
        zeros += (e->is[i] == 0) - (e->right[i] == 0);
    for (int64_t i = 0; i < e->count; i++)
        if (zeros > 0 || times_in(e->is, e->count, e->is[i], e->tolerance / 2) >
                             times_in(numbers_of(e->want), e->want->count, e->is[i], near))
            return false;
    int64_t now = 0;
    while (now < e->count && !(fabs(e->is[now] - e->right[e->first_wrong]) <= near))
        now++;
    if (now == e->count)
        return says(e,
                    _("the numbers are right ones, but not of this rank's part (element %s has the "
                      "number of another place): check which part each rank takes, and along "
                      "which dimension"),
                    address_text(e->got, e->first_wrong, (char[96]){0}));
    return says(
        e,
        _("the right numbers are all there but in the wrong places (the value of element %s "
          "is at element %s): check along which dimension the pieces are joined or split, "
          "and in which order"),
        address_text(e->got, e->first_wrong, (char[96]){0}),
        address_text(e->got, now, (char[96]){0}));
}

bool nearly_right(const Evidence *e)
{
    if (!(e->error < 0.008 * e->most_right)) /* bfloat16 has 8 bits */
        return false;
    return e->count > 1 &&
           says(e,
                _("it is right to about %.0f digits only: a shorter number format or an "
                  "approximation lost precision, or a small part is missing"),
                floor(-log10(e->error / e->most_right)));
}

bool all_outputs_right(const Evidence *e)
{
    int outputs = 0;
    for (const Entry *want = NULL; (want = next_entry(e->trial->expected.all, want));)
        if (want->kind == VALUES && want->check == FORWARD &&
            (want->label.what == OUTPUT_OF || want->label.what == VALUE_OF)) {
            outputs++;
            if (!is_right_on_rank(e->trial, want))
                return false;
        }
    return outputs > 0;
}

const char *line_of_raw_look(const Trial *t)
{
    for (const Entry *entry = NULL; (entry = next_entry(t->outcome->wrote[t->rank], entry));)
        if (entry->kind == WORK && entry->count == WORK_NUMBERS && numbers_of(entry)[RAW_LOOKS] > 0)
            return line_of(entry->address);
    return "";
}

static bool beside_the_tape(const Evidence *e)
{
    const char *line = line_of_raw_look(e->trial);
    return says(e,
                _("the forward pass is right, but its gradient is not: a part of that pass is not "
                  "on the tape (a group_... function, scale(), tensor_copy(), a loop over "
                  "tensor_data()%s%s), or the backward of an Op of your own is wrong"),
                line[0] ? _(", at ") : "", line);
}

/* In a case of one rank, is the gradient wrong although the forward pass is right? Nothing is
 * exchanged there, so if the lab keeps no variables, part of the forward pass is not on the
 * tape. */
bool not_on_tape(const Evidence *e)
{
    const Lab *lab = e->trial->result->lab;
    return !lab->backward_first && !e->trial->result->variables[0] && e->want->check != FORWARD &&
           e->want->check != STEP && alike_on_ranks(e->c) && lab->points[INPUT_GRADIENT] &&
           e->c->world == 1 && all_outputs_right(e) && beside_the_tape(e);
}

const Call *next_call_there(const Evidence *e, const Call *last)
{
    const Calls *calls = e->trial->outcome->calls;
    const Label *want = &e->want->label;
    if (!calls)
        return NULL;
    const RankCalls *mine = &calls->rank[e->trial->rank];
    for (int64_t i = last ? last + 1 - mine->call : 0; i < mine->count; i++) {
        const Label *where = &mine->call[i].where;
        if (where->of == want->of && where->index == want->index && where->step == want->step)
            return &mine->call[i];
    }
    return NULL;
}
