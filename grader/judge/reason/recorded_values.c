/* What the ranks have recorded of a tensor's numbers, beside the plain program's. */
#include "grader/judge/reason/recorded_values.h"

#include <math.h>

#include "base/language.h"
#include "grader/judge/mpi/recorded.h"
#include "tensor/tensor.h"

static const double alike =
    1e-4; /* what rounding explains, relative to the sum of absolute values */

bool is_sum_of(const double is[2], const double right[2], double size)
{
    for (int k = 0; k < 2; k++)
        if (!(fabs(is[k] - right[k]) <= alike * size) && !(isnan(is[k]) && isnan(right[k])))
            return false;
    return true;
}

static const char *const hows[] = {
    [ZERO] = N_(": it is zero"),
    [TIMES] = N_(": it is %.4g times what it should be"),
    [PARTS] = N_(": each rank has a part of it, and needs all of it"),
    [WHOLE_PARTS] = N_(": each rank has the whole sum, and needs only its own term of it"),
    [LOST_TERMS] = N_(": on each rank, it is one term of a sum over the ranks"),
    [OF_EACH_RANK] = N_(": each rank has its own, and all need the same, that of all ranks"),
};

void say_how(Wrong wrong, double factor, char how[LINE])
{
    snprintf(how, LINE, hows[wrong] ? _(hows[wrong]) : "", factor);
}

Wrong wrong_of(const Recorded *r, double *factor)
{
    double all[2] = {0}, size = fmax(r->plain->size, r->level);
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
        return NOT_WRONG;
    const double *is = r->added ? all : r->rank[wrong]->sum;
    *factor = is[0] / right[0];
    if (size > 0 && is[0] == 0 && is[1] == 0)
        return ZERO;
    if (r->ranks > 1 && r->added && wrong < 0)
        return WHOLE_PARTS;
    if (fabs(is[1] / right[1] - *factor) <= 1e-4 * fabs(*factor))
        return TIMES;
    return r->ranks == 1 || r->added || !added_up ? ANOTHER
           : r->rank[0]->kind == PARTIAL          ? PARTS
                                                  : LOST_TERMS;
}

const TapeOperation *gradient_of(OperationList back, const TapeOperation *o)
{
    for (int64_t i = 0; i < back.count; i++)
        if (back.operation[i].back && back.operation[i].output.tensor == o->output.tensor)
            return &back.operation[i];
    return NULL;
}

const TapeOperation *plain_operation(const Comparison *c, int i)
{
    for (int j = 0; j < c->f.program[PLAIN].count; j++)
        if (c->f.made[PLAIN][j] == c->f.made[RANK][i])
            return &c->f.program[PLAIN].operation[j];
    return NULL;
}

/* Operation i of this rank of the group, or NULL if the rank does something else there. */
static const TapeOperation *operation_on(const PassPrograms *p, const TapeOperation *own, int rank,
                                         int i)
{
    const OperationList *all = &p->forward[rank];
    const TapeOperation *o = all->count == p->forward[p->own].count ? &all->operation[i] : NULL;
    return o && o->address == own->address && !strcmp(o->name, own->name) &&
                   shape_equal(o->output.shape, own->output.shape)
               ? o
               : NULL;
}

bool find_recorded(const Comparison *c, const PassPrograms *p, int i, bool gradient, Recorded *r)
{
    const TapeOperation *own = &c->f.program[RANK].operation[i], *plain = plain_operation(c, i);
    const int kind = own->output.kind;
    *r = (Recorded){.ranks = p->ranks,
                    .added = kind == SHARD || kind == (gradient ? COPIED : PARTIAL)};
    if (!plain || kind == UNKNOWN ||
        (kind != SHARD && !shape_equal(own->output.shape, plain->output.shape)))
        return false;
    for (int k = 0; k < plain->inputs && !gradient; k++)
        if (shape_equal(plain->input[k].shape, plain->output.shape))
            r->level = fmax(r->level, plain->input[k].size);
    plain = gradient ? gradient_of(p->plain_back, plain) : plain;
    if (!plain || plain->output.size < 0)
        return false;
    r->plain = &plain->output;
    for (int k = 0; k < p->ranks; k++) {
        const TapeOperation *o = operation_on(p, own, k, i);
        o = o && gradient ? gradient_of(p->back[k], o) : o;
        if (!o || o->output.size < 0)
            return false;
        r->rank[k] = &o->output;
    }
    return true;
}

bool find_argument(const Comparison *c, const PassPrograms *p, int i, int k, Recorded *r)
{
    const TapeOperation *own = &c->f.program[RANK].operation[i], *plain = plain_operation(c, i);
    *r = (Recorded){.ranks = p->ranks, .added = own->input[k].kind == SHARD};
    for (int n = 0; plain && n < plain->inputs; n++)
        if (!strcmp(plain->name, own->name) && plain->inputs == own->inputs
                ? n == k
                : own->input[k].parameter[0] &&
                      !strcmp(plain->input[n].parameter, own->input[k].parameter))
            r->plain = &plain->input[n];
    for (int rank = 0; rank < p->ranks; rank++) {
        const TapeOperation *o = operation_on(p, own, rank, i);
        if (!o || o->input[k].size < 0)
            return false;
        r->rank[rank] = &o->input[k];
    }
    return r->plain && r->plain->size >= 0 && r->plain->integers == own->input[k].integers;
}

/* Does the plain program take an argument there too that no operation has made? */
static bool is_taken_by_plain(const Comparison *c, int i, int k)
{
    const TapeOperation *plain = plain_operation(c, i);
    return plain && k < form_by(c, i)->takes && form_at(c, form_by(c, i)->taken[k])->is_outside;
}

bool find_on_ranks(const Comparison *c, const PassPrograms *p, int i, int k, Recorded *r)
{
    const TapeOperation *own = &c->f.program[RANK].operation[i];
    const int kind = k == RESULT ? own->output.kind : own->input[k].kind;
    *r = (Recorded){.ranks = p->ranks, .added = kind == SHARD || kind == PARTIAL};
    for (int rank = 0; rank < p->ranks; rank++) {
        const TapeOperation *o = operation_on(p, own, rank, i);
        const TapeTensor *t = !o ? NULL : k == RESULT ? &o->output : &o->input[k];
        if (!t || t->size < 0 || t->integers)
            return false;
        r->rank[rank] = t;
    }
    return r->rank[0];
}

/* Compares with a tensor of the plain program. If it is not known how the ranks' tensors make up the
 * whole one, each rank may have it, or a term of it. */
static Wrong compared(Recorded *r, const TapeTensor *plain, double *factor)
{
    r->plain = plain;
    Wrong wrong = wrong_of(r, factor);
    if (wrong && r->rank[0]->kind == UNKNOWN) {
        double other;
        r->added = true;
        wrong = wrong_of(r, &other) ? wrong : NOT_WRONG;
        r->added = false;
    }
    return wrong;
}

Known are_known_numbers(const Comparison *c, Recorded *r, int *by, char how[LINE])
{
    char name[LINE] = "";
    double factor = 1;
    bool some = r->rank[0]->kind != UNKNOWN, all = true;
    how[0] = '\0';
    for (int j = 0; j < c->f.program[PLAIN].count; j++) {
        const TapeOperation *o = &c->f.program[PLAIN].operation[j];
        for (int n = RESULT; n < o->inputs; n++) {
            const TapeTensor *plain = n == RESULT ? &o->output : &o->input[n];
            const bool same_shape = shape_equal(plain->shape, r->rank[0]->shape);
            if (plain->integers || (r->rank[0]->kind == UNKNOWN && !same_shape))
                continue;
            some = some || same_shape;
            all = all && plain->size >= 0;
            const Wrong wrong = plain->size < 0 ? ANOTHER : compared(r, plain, &factor);
            if (!wrong) {
                *by = n == RESULT ? j : maker_of(c, PLAIN, j, plain->tensor);
                return KNOWN_NUMBERS;
            }
            if (wrong == ZERO)
                snprintf(how, LINE, "%s", _("; its numbers are zero"));
            if (wrong != TIMES || n != RESULT || name[0])
                continue;
            append_operation(c, form_at(c, c->f.made[PLAIN][j]), name);
            snprintf(how, LINE, _("; its numbers are %.4g times those of %s in the layer"), factor,
                     name);
        }
    }
    return some && all ? OTHER_NUMBERS : NOT_COMPARED;
}

bool is_values_only(const Comparison *c, int i, int k)
{
    const TapeTensor *a = &c->f.program[RANK].operation[i].input[k];
    return maker_of(c, RANK, i, a->tensor) == NO_FORM && !a->parameter[0] && !a->integers &&
           !a->needs_gradient && !is_taken_by_plain(c, i, k);
}

void identify(Comparison *c, const PassPrograms *p)
{
    char how[LINE];
    Recorded r;
    int by;
    for (int i = 0; i < c->f.program[RANK].count; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        if ((is_pair(o) || is_values_only(c, i, 0)) && find_on_ranks(c, p, i, RESULT, &r) &&
            are_known_numbers(c, &r, &by, how) == KNOWN_NUMBERS && by != NO_FORM) {
            c->f.forced[i] = c->f.made[PLAIN][by];
            forms_make(&c->f);
        }
    }
}

Known is_right_move(const Comparison *c, const PassPrograms *p, int i, char how[LINE])
{
    Recorded r, taken;
    int by;
    double factor = 1;
    how[0] = '\0';
    if (!find_on_ranks(c, p, i, RESULT, &r))
        return NOT_COMPARED;
    const Known known = are_known_numbers(c, &r, &by, how);
    const bool comparable =
        find_on_ranks(c, p, i, 0, &taken) &&
        (r.rank[0]->kind != UNKNOWN || shape_equal(r.rank[0]->shape, taken.rank[0]->shape));
    if (known == KNOWN_NUMBERS || !comparable)
        return known;
    TapeTensor whole = *taken.rank[0];
    for (int k = 1; k < p->ranks && taken.added; k++) {
        whole.sum[0] += taken.rank[k]->sum[0];
        whole.sum[1] += taken.rank[k]->sum[1];
        whole.size += taken.rank[k]->size;
    }
    const Wrong wrong = compared(&r, &whole, &factor);
    if (wrong && wrong != ANOTHER)
        say_how(wrong, factor, how);
    return !wrong ? KNOWN_NUMBERS : !c->f.program[PLAIN].count ? OTHER_NUMBERS : known;
}
