/* The first operation of a pass whose result, or the gradient that it returns, has other numbers
 * than in the plain program. What the ranks hold is compared as sums over all places, weighted by
 * the place in the whole tensor, so the layout does not matter. */
#include <math.h>
#include <stdlib.h>

#include "base/language.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/reason/comparison.h"
#include "tensor/tensor.h"

static const double alike =
    1e-4; /* what rounding explains, relative to the sum of absolute values */

/* A tensor as the ranks of a group have recorded it, and the plain program's. */
typedef struct Recorded {
    const TapeOperation *rank[MAX_RANKS], *plain;
    int ranks;
    bool added; /* it is the sum of what the ranks hold */
} Recorded;

static bool is_sum_of(const double is[2], const double right[2], double size)
{
    for (int k = 0; k < 2; k++)
        if (!(fabs(is[k] - right[k]) <= alike * size) && !(isnan(is[k]) && isnan(right[k])))
            return false;
    return true;
}

/* Is it wrong? Writes how, if the sums show it, as the end of a sentence. */
static bool is_wrong(const Recorded *r, bool *one_term, char how[160])
{
    double all[2] = {0}, size = r->plain->size;
    const double *right = r->plain->sum;
    int wrong = -1;
    for (int k = 0; k < r->ranks; k++) {
        all[0] += r->rank[k]->sum[0];
        all[1] += r->rank[k]->sum[1];
        size = fmax(size, r->rank[k]->size);
    }
    for (int k = 0; k < r->ranks && wrong < 0; k++)
        wrong = is_sum_of(r->rank[k]->sum, right, size) ? wrong : k;
    const bool added_up = is_sum_of(all, right, size);
    if (r->added ? added_up : wrong < 0)
        return false;
    const double *is = r->added ? all : r->rank[wrong]->sum;
    const double factor = is[0] / right[0];
    const bool scaled = fabs(is[1] / right[1] - factor) <= 1e-3 * fabs(factor),
               in_parts = r->ranks > 1 && !r->added && added_up && !scaled;
    how[0] = '\0';
    *one_term = in_parts && r->rank[0]->output.kind != PARTIAL;
    if (size > 0 && is[0] == 0 && is[1] == 0)
        snprintf(how, 160, "%s", _(": it is zero"));
    else if (in_parts)
        snprintf(how, 160, "%s", _(": each rank has a part of it, and needs all of it"));
    else if (r->ranks > 1 && r->added && wrong < 0)
        snprintf(how, 160, "%s", _(": each rank has all of it, where one term of the sum is due"));
    else if (scaled)
        snprintf(how, 160, _(": it is %.4g times what it should be"), factor);
    return true;
}

static const TapeOperation *gradient_of(OperationList back, const TapeOperation *o)
{
    for (int64_t i = 0; i < back.count; i++)
        if (back.operation[i].back && back.operation[i].output.tensor == o->output.tensor)
            return &back.operation[i];
    return NULL;
}

/* What was recorded of the result of operation i, or of its gradient. @return whether all of it */
static bool find_recorded(const Comparison *c, const PassPrograms *p, int i, bool gradient,
                          Recorded *r)
{
    const TapeOperation *own = &c->f.program[RANK].operation[i];
    const int kind = own->output.kind;
    *r = (Recorded){.ranks = p->ranks,
                    .added = kind == SHARD || kind == (gradient ? COPIED : PARTIAL)};
    for (int j = 0; j < c->f.program[PLAIN].count && !r->plain; j++)
        if (c->f.made[PLAIN][j] == c->f.made[RANK][i])
            r->plain = &c->f.program[PLAIN].operation[j];
    if (r->plain && gradient)
        r->plain = gradient_of(p->plain_back, r->plain);
    if (!r->plain || r->plain->size < 0 || kind == UNKNOWN ||
        (kind != SHARD && !shape_equal(own->output.shape, r->plain->output.shape)))
        return false;
    for (int k = 0; k < p->ranks; k++) {
        const TapeOperation *o =
            p->forward[k].count == p->forward[p->own].count ? &p->forward[k].operation[i] : NULL;
        if (!o || o->address != own->address || strcmp(o->name, own->name) != 0 ||
            !shape_equal(o->output.shape, own->output.shape))
            return false;
        r->rank[k] = gradient ? gradient_of(p->back[k], o) : o;
        if (!r->rank[k] || r->rank[k]->size < 0)
            return false;
    }
    return true;
}

static void append_call(const Comparison *c, int i, char text[LINE])
{
    if (is_move(&c->f, &c->f.program[RANK].operation[i]))
        append(text, LINE, "%s", c->f.program[RANK].operation[i].name);
    else
        append_operation(c, form_by(c, i), text);
}

/* How many operations take this tensor. Sets *function to the one that is a function of a lab, or to
 * NO_FORM if there is none or several. */
static int takers_of(const Comparison *c, const void *tensor, int *function)
{
    int takers = 0, functions = 0;
    for (int j = 0; j < c->f.program[RANK].count; j++) {
        const TapeOperation *o = &c->f.program[RANK].operation[j];
        for (int k = 0; k < o->inputs; k++) {
            if (o->input[k].tensor != tensor)
                continue;
            takers++;
            if (!is_of_kit(c, o)) {
                functions++;
                *function = j;
            }
        }
    }
    if (functions != 1)
        *function = NO_FORM;
    return takers;
}

/* Is this the result of a move of something that other operations take too? Then its gradient is
 * only a part of the plain one. */
static bool has_part_of_gradient(const Comparison *c, int i)
{
    int function;
    const TapeOperation *o = &c->f.program[RANK].operation[i];
    return is_move(&c->f, o) && takers_of(c, o->input[0].tensor, &function) != 1;
}

/* Are all arguments of operation i right, as far as they are not integers? What enters the pass is, if
 * it is the first one. */
static bool takes_right_values(const Comparison *c, const bool right[], int i, bool first_pass)
{
    const TapeOperation *o = &c->f.program[RANK].operation[i];
    for (int k = 0; k < o->inputs; k++) {
        const int j = maker_of(c, i, o->input[k].tensor);
        if (j != NO_FORM ? !right[j]
                         : !first_pass && !o->input[k].parameter[0] && !o->input[k].integers)
            return false;
    }
    return true;
}

/* Do the two operations take different integers: masks, ids? */
static bool takes_other_integers(const TapeOperation *o, const TapeOperation *plain)
{
    for (int k = 0; k < o->inputs && k < plain->inputs; k++)
        if (o->input[k].integers && o->input[k].sum != plain->input[k].sum)
            return true;
    return false;
}

/* Tells of an operation that takes a tensor of values only: no operation has made it, and it needs no
 * gradient, as what enters the pass does. */
static bool takes_values_only(const Comparison *c, char *text, size_t size)
{
    char name[LINE] = "";
    for (int i = 0; i < c->f.program[RANK].count; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        for (int k = 0; k < o->inputs; k++) {
            const TapeTensor *a = &o->input[k];
            if (maker_of(c, i, a->tensor) != NO_FORM || a->parameter[0] || a->integers ||
                a->needs_gradient)
                continue;
            append_call(c, i, name);
            snprintf(text, size,
                     _("%s at %s takes a tensor that is not on the tape, as group_... and "
                       "..._forward functions, tensor_copy() and loops over tensor_data() make "
                       "them: it has values, and no gradient flows back through it"),
                     name, line_of(o->address));
            return true;
        }
    }
    return false;
}

static bool wrong_result(const Comparison *c, const PassPrograms *p, char *text, size_t size)
{
    char how[160], name[LINE] = "";
    bool one_term, right[RING_OPERATIONS] = {0};
    Recorded r;
    for (int i = 0; i < c->f.program[RANK].count; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        const bool right_values = takes_right_values(c, right, i, p->first);
        if (!find_recorded(c, p, i, false, &r)) {
            right[i] = right_values && is_move(&c->f, o) && form_by(c, i)->is_outside;
            continue;
        }
        right[i] = !is_wrong(&r, &one_term, how);
        if (right[i] || !right_values)
            continue;
        append_call(c, i, name);
        if (takes_other_integers(o, r.plain)) {
            if (strncmp(o->name, "attention", 9) != 0)
                return false; /* a rank may look up other ids than the plain layer does */
            snprintf(text, size, _("%s at %s takes another mask than the layer was given"), name,
                     line_of(o->address));
            return true;
        }
        if (one_term)
            snprintf(how, sizeof how, "%s",
                     _(": on each rank, it is one term of a sum over the ranks"));
        else if (is_of_kit(c, o) && strcmp(form_by(c, i)->name, "dropout") != 0)
            snprintf(how, sizeof how, "%s", _(": was one of its arguments changed in between?"));
        snprintf(
            text, size,
            _("everything that was computed before %s at %s is right, and its result is not%s"),
            name, line_of(o->address), how);
        return true;
    }
    return false;
}

static bool wrong_gradient(const Comparison *c, const PassPrograms *p, char *text, size_t size)
{
    char how[160], name[LINE] = "";
    bool one_term;
    int by;
    Recorded r;
    for (int i = (int)c->f.program[RANK].count - 1; i >= 0; i--) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        if (has_part_of_gradient(c, i) || !find_recorded(c, p, i, true, &r) ||
            !is_wrong(&r, &one_term, how))
            continue;
        takers_of(c, o->output.tensor, &by);
        by = one_term ? NO_FORM : by;
        if (by == NO_FORM && !one_term && p->has_loops)
            return false; /* a loop over raw numbers is not on the tape */
        append_call(c, by == NO_FORM ? i : by, name);
        if (by != NO_FORM)
            o = &c->f.program[RANK].operation[by];
        snprintf(
            text, size,
            one_term
                ? _("on each rank, the gradient of the result of %s at %s is one term of a sum, and no operation adds these terms up%s")
            : by == NO_FORM
                ? _("the gradient of the result of %s at %s is the first that is wrong%s")
                : _("in the backward pass, %s at %s is the first operation that returns a "
                    "wrong gradient%s"),
            name, line_of(o->address), one_term ? "" : how);
        return true;
    }
    return false;
}

bool first_wrong_value(const PassPrograms *p, bool gradient, char *text, size_t size)
{
    Comparison *c = comparison_new(p->forward[p->own], p->plain);
    const bool by_values = c && c->f.outside[RANK] > c->f.outside[PLAIN];
    const bool found = c && (by_values  ? takes_values_only(c, text, size)
                             : gradient ? wrong_gradient(c, p, text, size)
                                        : wrong_result(c, p, text, size));
    free(c);
    return found;
}
