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
    const TapeTensor *rank[MAX_RANKS], *plain;
    int ranks;
    bool added;   /* it is the sum of what the ranks hold */
    double level; /* numbers of this size have gone into it: rounding is relative to them */
} Recorded;

static bool is_sum_of(const double is[2], const double right[2], double size)
{
    for (int k = 0; k < 2; k++)
        if (!(fabs(is[k] - right[k]) <= alike * size) && !(isnan(is[k]) && isnan(right[k])))
            return false;
    return true;
}

/* What is wrong with a tensor, as far as the sums show it. */
typedef enum Wrong {
    NOT_WRONG,
    ANOTHER,      /* no more is known */
    ZERO,         /* on all ranks */
    TIMES,        /* a multiple of what it should be */
    PARTS,        /* each rank has a part, and needs all */
    WHOLE_PARTS,  /* each rank has all, where one term is due */
    LOST_TERMS,   /* the ranks' terms of a sum are taken for the whole */
    OF_EACH_RANK, /* an argument differs between the ranks */
} Wrong;

static const char *const hows[] = {
    [ZERO] = N_(": it is zero"),
    [TIMES] = N_(": it is %.4g times what it should be"),
    [PARTS] = N_(": each rank has a part of it, and needs all of it"),
    [WHOLE_PARTS] = N_(": each rank has all of it, where one term of the sum is due"),
    [LOST_TERMS] = N_(": on each rank, it is one term of a sum over the ranks"),
    [OF_EACH_RANK] = N_(": each rank has its own, and all need the same, that of all ranks"),
};

/* Writes how it is wrong as the end of a sentence. */
static void say_how(Wrong wrong, double factor, char how[LINE])
{
    snprintf(how, LINE, hows[wrong] ? _(hows[wrong]) : "", factor);
}

static Wrong wrong_of(const Recorded *r, double *factor)
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

static const TapeOperation *gradient_of(OperationList back, const TapeOperation *o)
{
    for (int64_t i = 0; i < back.count; i++)
        if (back.operation[i].back && back.operation[i].output.tensor == o->output.tensor)
            return &back.operation[i];
    return NULL;
}

/* The operation of the plain program that computes what operation i of the rank does, or NULL. */
static const TapeOperation *plain_operation(const Comparison *c, int i)
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

/* What was recorded of the result of operation i, or of its gradient. @return whether all of it */
static bool find_recorded(const Comparison *c, const PassPrograms *p, int i, bool gradient,
                          Recorded *r)
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

/* The same of argument k of operation i, beside what the plain program takes there or, if that is
 * another operation, what it takes with the same name. */
static bool find_argument(const Comparison *c, const PassPrograms *p, int i, int k, Recorded *r)
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

/* Do the ranks take other integers than the plain program? If each looks up its own part of them, all
 * together count. Writes how. */
static bool are_other_integers(const Recorded *r, bool in_parts, bool of_table, char how[LINE])
{
    double all = 0, held = 0, other = -1;
    for (int k = 0; k < r->ranks; k++) {
        all += r->rank[k]->sum[1];
        held += r->rank[k]->size;
        if (r->rank[k]->sum[0] != r->plain->sum[0])
            other = r->rank[k]->size;
    }
    if (in_parts ? fabs(all - r->plain->sum[1]) <= 1e-9 * r->plain->sum[1] : other < 0)
        return false;
    held = in_parts ? held : other;
    how[0] = '\0';
    if (held != r->plain->size)
        append(how, LINE,
               in_parts ? _(": over all ranks, %.0f of them are not NO_ID, and %.0f should be")
                        : _(": %.0f of them are not NO_ID, and %.0f should be"),
               held, r->plain->size);
    if (in_parts || of_table)
        append(how, LINE, "%s",
               _(". Each id belongs to the rank that holds its row or column, and counts from the "
                 "first one there: ids_between() with shard_begin(), or own_ids()"));
    return true;
}

/* Is an argument that no operation has made another one than the plain program's? Writes how. */
static bool is_other_argument(const Comparison *c, const PassPrograms *p, int i, int k,
                              char how[LINE])
{
    const TapeOperation *o = &c->f.program[RANK].operation[i];
    double factor = 1;
    Recorded r;
    if (!find_argument(c, p, i, k, &r))
        return false;
    if (o->input[k].integers)
        return are_other_integers(&r, o->output.kind == PARTIAL && p->ranks > 1,
                                  !strcmp(o->name, "lookup"), how);
    Wrong wrong = wrong_of(&r, &factor);
    for (int rank = 1; rank < r.ranks && wrong && !r.added; rank++)
        if (!is_sum_of(r.rank[rank]->sum, r.rank[0]->sum, r.rank[0]->size))
            wrong = OF_EACH_RANK;
    say_how(wrong, factor, how);
    return wrong;
}

/* Has the result of an operation changed when another one takes it? Writes how. */
static bool has_changed(const TapeTensor *made, const TapeTensor *taken, char how[LINE])
{
    double factor = 1;
    const Recorded r = {.rank = {taken}, .plain = made, .ranks = 1};
    const Wrong wrong = made->size < 0 || taken->size < 0 ? NOT_WRONG : wrong_of(&r, &factor);
    say_how(wrong, factor, how);
    return wrong;
}

/* Are all arguments of operation i right? If one is not, though what has made it was, tells it. */
static bool takes_right_values(const Comparison *c, const PassPrograms *p, const bool right[],
                               int i, char *text, size_t size)
{
    const TapeOperation *all = c->f.program[RANK].operation, *o = &all[i];
    char how[LINE], name[LINE] = "", other[LINE] = "";
    for (int k = 0; k < o->inputs; k++) {
        const int j = maker_of(c, i, o->input[k].tensor);
        if (j != NO_FORM && !right[j])
            return false;
        if (j != NO_FORM ? !has_changed(&all[j].output, &o->input[k], how)
                         : !is_other_argument(c, p, i, k, how))
            continue;
        append_call(c, i, name);
        if (j == NO_FORM) {
            append_value(c, form_by(c, i)->taken[k], SHORT, other);
            snprintf(text, size, _("%s at %s takes other numbers for `%s` than the layer%s"), name,
                     line_of(o->address), other, how);
        } else {
            append_call(c, j, other);
            snprintf(
                text, size,
                _("the result of %s at %s is right, but was changed before %s at %s took it%s"),
                other, line_of(all[j].address), name, line_of(o->address), how);
        }
        return false;
    }
    return true;
}

enum { RESULT = -1 }; /* in place of an argument's number */

/* Does the plain program take an argument there too that no operation has made? */
static bool is_taken_by_plain(const Comparison *c, int i, int k)
{
    const TapeOperation *plain = plain_operation(c, i);
    return plain && k < form_by(c, i)->takes && form_at(c, form_by(c, i)->taken[k])->is_outside;
}

/* What all ranks have recorded of argument k of operation i or, if k is RESULT, of its result. @return
 * whether all have */
static bool find_on_ranks(const Comparison *c, const PassPrograms *p, int i, int k, Recorded *r)
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
    return true;
}

/* Are these the numbers of a tensor of the plain program? If not, writes how they differ from its
 * results. Sets *by to the operation with this result, or to NO_FORM. */
static bool are_known_numbers(const Comparison *c, Recorded *r, int *by, char how[LINE])
{
    char name[LINE] = "";
    double factor = 1;
    snprintf(how, LINE, "%s", _("; its numbers are not those of any result of the layer"));
    for (int j = 0; j < c->f.program[PLAIN].count; j++) {
        const TapeOperation *o = &c->f.program[PLAIN].operation[j];
        for (int n = RESULT; n < o->inputs; n++) {
            r->plain = n == RESULT ? &o->output : &o->input[n];
            const Wrong wrong =
                r->plain->size < 0 || r->plain->integers ? ANOTHER : wrong_of(r, &factor);
            *by = n == RESULT ? j : NO_FORM;
            if (!wrong)
                return true;
            if (wrong == ZERO)
                snprintf(how, LINE, "%s", _("; its numbers are zero"));
            if (wrong != TIMES || n != RESULT || name[0])
                continue;
            append_operation(c, form_at(c, c->f.made[PLAIN][j]), name);
            snprintf(how, LINE, _("; its numbers are %.4g times those of %s in the layer"), factor,
                     name);
        }
    }
    return false;
}

/* Is argument k of operation i a tensor of values only: made by no operation, and without a gradient,
 * as what enters the pass has? */
static bool is_values_only(const Comparison *c, int i, int k)
{
    const TapeTensor *a = &c->f.program[RANK].operation[i].input[k];
    return maker_of(c, i, a->tensor) == NO_FORM && !a->parameter[0] && !a->integers &&
           !a->needs_gradient && !is_taken_by_plain(c, i, k);
}

/* Finds what the lab's own functions compute, and what values without a history are, by their
 * numbers. */
static void identify(Comparison *c, const PassPrograms *p)
{
    char how[LINE];
    Recorded r;
    int by;
    for (int i = 0; i < c->f.program[RANK].count; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        if ((is_pair(o) || is_values_only(c, i, 0)) && find_on_ranks(c, p, i, RESULT, &r) &&
            are_known_numbers(c, &r, &by, how) && by != NO_FORM) {
            c->f.forced[i] = c->f.made[PLAIN][by];
            forms_make(&c->f);
        }
    }
}

/* Is the result of a function of the lab right: a tensor of the plain program, or what it took? */
static bool is_right_move(const Comparison *c, const PassPrograms *p, int i, char how[LINE])
{
    Recorded r, taken;
    int by;
    double factor = 1;
    if (!find_on_ranks(c, p, i, RESULT, &r) || are_known_numbers(c, &r, &by, how))
        return true;
    if (!find_on_ranks(c, p, i, 0, &taken))
        return false;
    TapeTensor whole = *taken.rank[0];
    for (int k = 1; k < p->ranks && taken.added; k++) {
        whole.sum[0] += taken.rank[k]->sum[0];
        whole.sum[1] += taken.rank[k]->sum[1];
        whole.size += taken.rank[k]->size;
    }
    r.plain = &whole;
    const Wrong wrong = wrong_of(&r, &factor);
    if (wrong != ANOTHER || !c->f.program[PLAIN].count)
        say_how(wrong, factor, how);
    return !wrong;
}

/* Tells of an operation that takes a tensor of values only. In a forward pass, the values must be
 * wrong. */
static bool takes_values_only(const Comparison *c, const PassPrograms *p, bool gradient, char *text,
                              size_t size)
{
    char how[LINE] = "", name[LINE] = "";
    Recorded r;
    int by;
    for (int i = 0; i < c->f.program[RANK].count; i++)
        for (int k = 0; k < c->f.program[RANK].operation[i].inputs; k++) {
            if (!is_values_only(c, i, k) || (!gradient && (!find_on_ranks(c, p, i, k, &r) ||
                                                           are_known_numbers(c, &r, &by, how))))
                continue;
            append_call(c, i, name);
            snprintf(text, size,
                     _("%s at %s takes a tensor that is not on the tape, as group_... and "
                       "..._forward functions, tensor_copy() and loops over tensor_data() make "
                       "them%s"),
                     name, line_of(c->f.program[RANK].operation[i].address),
                     gradient ? _(": it has values, and no gradient flows back through it") : how);
            return true;
        }
    return false;
}

static bool wrong_result(const Comparison *c, const PassPrograms *p, char *text, size_t size)
{
    char how[LINE], name[LINE] = "";
    bool right[RING_OPERATIONS] = {0};
    double factor = 1;
    Recorded r;
    const int count = (int)c->f.program[RANK].count;
    for (int i = 0; i < count; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        text[0] = '\0';
        const bool right_values = takes_right_values(c, p, right, i, text, size);
        const bool by_numbers = is_move(&c->f, o) && c->f.forced[i] == NO_FORM &&
                                (is_pair(o) || !plain_operation(c, i));
        Wrong wrong = ANOTHER;
        if (by_numbers && !is_values_only(c, i, 0)) {
            wrong = is_right_move(c, p, i, how) ? NOT_WRONG : ANOTHER;
        } else if (find_recorded(c, p, i, false, &r)) {
            say_how(wrong = wrong_of(&r, &factor), factor, how);
        } else {
            right[i] = right_values && !is_move(&c->f, o); /* the kit computes what it is asked */
            continue;
        }
        right[i] = !wrong;
        if (wrong && !right_values && text[0])
            return true;
        if (!wrong || !right_values)
            continue;
        append_call(c, i, name);
        snprintf(
            text, size,
            _("everything that was computed before %s at %s is right, and its result is not%s"),
            name, line_of(o->address), how);
        return true;
    }
    text[0] = '\0';
    if (!p->returned || !right[count - 1])
        return false;
    append_call(c, count - 1, name);
    say_how(p->returned == 1 ? ANOTHER : TIMES, p->returned, how);
    snprintf(
        text, size,
        _("the result of %s at %s is right, but it was changed later, or another tensor was returned%s"),
        name, line_of(c->f.program[RANK].operation[count - 1].address), how);
    return true;
}

static bool wrong_gradient(const Comparison *c, const PassPrograms *p, char *text, size_t size)
{
    char how[LINE], name[LINE] = "";
    double factor = 1;
    int by;
    Recorded r;
    for (int i = (int)c->f.program[RANK].count - 1; i >= 0; i--) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        if (has_part_of_gradient(c, i) || !find_recorded(c, p, i, true, &r))
            continue;
        const Wrong wrong = wrong_of(&r, &factor);
        if (!wrong)
            continue;
        takers_of(c, o->output.tensor, &by);
        by = wrong == LOST_TERMS ? NO_FORM : by;
        if (by == NO_FORM && wrong != LOST_TERMS && p->has_loops)
            return false; /* a loop over raw numbers is not on the tape */
        append_call(c, by == NO_FORM ? i : by, name);
        if (by != NO_FORM)
            o = &c->f.program[RANK].operation[by];
        say_how(wrong, factor, how);
        snprintf(
            text, size,
            wrong == LOST_TERMS
                ? _("on each rank, the gradient of the result of %s at %s is one term of a sum, and no operation adds these terms up%s")
            : by == NO_FORM
                ? _("the gradient of the result of %s at %s is the first that is wrong%s")
                : _("in the backward pass, %s at %s is the first operation that returns a "
                    "wrong gradient%s"),
            name, line_of(o->address), wrong == LOST_TERMS ? "" : how);
        return true;
    }
    /* what takes x returns the pass's own gradient */
    for (int i = 0; i < c->f.program[RANK].count && p->input_gradient_is_wrong; i++) {
        const TapeOperation *o = &c->f.program[RANK].operation[i];
        if (maker_of(c, i, o->input[0].tensor) != NO_FORM || !o->input[0].needs_gradient ||
            takers_of(c, o->input[0].tensor, &by) != 1)
            continue;
        append_call(c, i, name);
        snprintf(text, size,
                 _("in the backward pass, %s at %s is the first operation that returns a "
                   "wrong gradient%s"),
                 name, line_of(o->address),
                 strcmp(o->name, "part") ? "" : _(": outside of that part, it is zero"));
        return true;
    }
    return false;
}

bool first_wrong_value(const PassPrograms *p, bool gradient, char *text, size_t size)
{
    Comparison *c = comparison_new(p->forward[p->own], p->plain);
    const bool by_values = c && c->f.outside[RANK] > c->f.outside[PLAIN];
    bool found = by_values && gradient && takes_values_only(c, p, true, text, size);
    if (c && !found) {
        identify(c, p);
        found = gradient ? wrong_gradient(c, p, text, size)
                         : wrong_result(c, p, text, size) ||
                               (by_values && takes_values_only(c, p, false, text, size));
    }
    free(c);
    return found;
}
