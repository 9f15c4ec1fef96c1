/* Which rank holds which part of each matrix, and which elements are wrong. */
#include "grader/judge/commands.h"
#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/groups.h"
#include <math.h>

enum { RUNS_SHOWN = 3000, ELEMENTS_TOLD = 5, SHADES = 4 };

static json_t *shape_json(Shape shape)
{
    json_t *sizes = json_array();
    for (int i = 0; i < shape.rank; i++)
        json_array_append_new(sizes, json_integer(shape.size[i]));
    return sizes;
}

/* Judges as the verdict does: values within their tolerance, initial values exactly. */
static bool is_wrong(const Entry *want, double is, double right, double tolerance)
{
    return want->kind == PARAMETER ? is != (double)(float)right : !(fabs(is - right) <= tolerance);
}

/* Element `local` of a rank's part, by its index in the full tensor. */
static json_t *element_json(const Entry *got, const Entry *want, int64_t local)
{
    const int digits = digits_shown(want);
    const int64_t at = global_index(got, local);
    return json_pack("{s:I, s:o, s:o}", "at", (json_int_t)at, "is",
                     json_sprintf("%.*g", digits, numbers_of(got)[local]), "expected",
                     json_sprintf("%.*g", digits, numbers_of(want)[at]));
}

/* From 1 to SHADES for an error of at most the largest one of a rank, which may be infinite. A part
 * with more elements than runs are shown has one shade. */
static int shade(const Entry *got, double error, double largest)
{
    return got->count <= RUNS_SHOWN && error < largest ? (int)(SHADES * error / largest) + 1
                                                       : SHADES;
}

/* Adds the wrong elements, by their index in the full tensor: their number, their runs (first
 * index, length, shade), and the values of the first ones and of the worst one, which the verdict names. */
static void add_wrong(json_t *part, const Entry *got, const Entry *want, double tolerance)
{
    json_t *runs = json_array(), *first = json_array();
    int64_t count = 0, begin = -1, length = 0, last_told = -1, worst;
    const double largest = largest_error(got, want, &worst);
    int run_shade = 0;
    for (int64_t i = 0; i <= got->count; i++) {
        const int64_t at = i < got->count ? global_index(got, i) : -1;
        const bool wrong =
            i < got->count && is_wrong(want, numbers_of(got)[i], numbers_of(want)[at], tolerance);
        if (wrong && count++ < ELEMENTS_TOLD) {
            json_array_append_new(first, element_json(got, want, i));
            last_told = i;
        }
        const int now =
            wrong ? shade(got, fabs(numbers_of(got)[i] - numbers_of(want)[at]), largest) : 0;
        if (length && (now != run_shade || at != begin + length)) {
            if (json_array_size(runs) < RUNS_SHOWN)
                json_array_append_new(
                    runs, json_pack("[I, I, i]", (json_int_t)begin, (json_int_t)length, run_shade));
            length = 0;
        }
        if (wrong && !length++)
            begin = at, run_shade = now;
    }
    if (count && worst > last_told)
        json_array_append_new(first, element_json(got, want, worst));
    json_object_set_new(part, "wrong", json_integer(count));
    json_object_set_new(part, "runs", runs);
    json_object_set_new(part, "first", first);
}

/* The entries of a tp group's ranks. If the lab left out the sum, their numbers add up to the
 * expected ones. In the gradient of a layer's input, each rank has also added what reaches the
 * input around the layer; only the rest is a term. */
typedef struct Addends {
    const Entry *of[MAX_RANKS];
    int count;
    const double *past; /* what all ranks have added; NULL if nothing */
} Addends;

static double term_at(const Addends *a, int i, int64_t at)
{
    return numbers_of(a->of[i])[at] - (a->past ? a->past[at] : 0);
}

static double sum_at(const Addends *a, int64_t at)
{
    double sum = a->past ? a->past[at] : 0;
    for (int i = 0; i < a->count; i++)
        sum += term_at(a, i, at);
    return sum;
}

/* Is any number of these entries wrong? */
static bool has_wrong(const Addends *a, const Entry *want, double tolerance)
{
    for (int i = 0; i < a->count; i++)
        for (int64_t at = 0; at < want->count; at++)
            if (is_wrong(want, numbers_of(a->of[i])[at], numbers_of(want)[at], tolerance))
                return true;
    return false;
}

/* Fills in the entries of this rank's group. Are they wrong, and do they add up to the expected
 * numbers? */
static bool find_addends(Trial *t, const Entry *want, double tolerance, Addends *a)
{
    const Members group = tp_group(t->c, t->rank);
    *a = (Addends){.count = group.count};
    for (int i = 0; i < a->count; i++) {
        a->of[i] = entry_of_rank(t, group.first + i * group.stride, (int)want->kind, want->label);
        if (!a->of[i] || a->of[i]->placement_kind == SHARD || !has_numbers(a->of[i], want))
            return false;
    }
    if (a->count == 1 || !has_wrong(a, want, tolerance))
        return false;
    a->past = past_the_layer(t, want);
    for (int64_t at = 0; at < want->count; at++)
        if (!(fabs(sum_at(a, at) - numbers_of(want)[at]) <= tolerance * a->count))
            return false;
    return true;
}

/* Adds the addends of each element in "first" and, last, what each rank has added to its term. */
static void add_addends(Trial *t, json_t *part, const Entry *want, double tolerance)
{
    Addends a;
    json_t *one;
    size_t index;
    if (want->kind != VALUES || !find_addends(t, want, tolerance, &a))
        return;
    const Members group = tp_group(t->c, t->rank);
    json_t *ranks = json_array();
    for (int i = 0; i < a.count; i++)
        json_array_append_new(ranks, json_integer(group.first + i * group.stride));
    json_object_set_new(part, "addend", ranks);
    json_array_foreach(json_object_get(part, "first"), index, one)
    {
        const json_int_t at = json_integer_value(json_object_get(one, "at"));
        json_t *terms = json_array();
        for (int i = 0; i < a.count; i++)
            json_array_append_new(terms, json_sprintf("%.4g", term_at(&a, i, at)));
        if (a.past)
            json_array_append_new(terms, json_sprintf("%.4g", a.past[at]));
        json_object_set_new(one, "terms", terms);
    }
}

/* A rank may have written anything. */
static const char *placement_name(int kind)
{
    static const char *const names[] = {"whole",   "copied",  "shard",
                                        "partial", "unknown", "undecided"};
    return kind >= 0 && kind < (int)(sizeof names / sizeof *names) ? names[kind] : "unknown";
}

/* For a parameter that this rank splits wrongly: adds the part that it should hold. */
static void add_wanted(const Trial *t, json_t *part, const Entry *got, const Entry *want)
{
    if (want->kind != PARAMETER || !is_cut_wrongly(t, got, want))
        return;
    const unsigned cuts = lab_cuts(lab_of(t->c->lab), want->label.name);
    const int dim = cuts & CUT_0 ? 0 : 1;
    const Range held =
        chunk(want->shape.size[dim], place_in(tp_group(t->c, t->rank), t->rank), t->c->tp);
    json_object_set_new(part, "wanted",
                        json_pack("{s:s, s:i, s:I, s:I}", "placement",
                                  cuts & CUT_NOT ? "whole" : "shard", "dim", dim, "begin",
                                  (json_int_t)held.begin, "end", (json_int_t)held.end));
}

static json_t *part_json(Trial *t, const Entry *got, const Entry *want)
{
    json_t *part = json_pack("{s:i, s:b, s:o}", "rank", t->rank, "there", got != NULL, "undivided",
                             shape_json(want->shape));
    if (!got)
        return part;
    const bool fits = has_numbers(got, want);
    json_object_update_new(part, json_pack("{s:s, s:s, s:i, s:I, s:I, s:o, s:b, s:I}", "placement",
                                           placement_name(got->placement_kind), "called",
                                           placement_name(got->called), "dim", got->placement_dim,
                                           "begin", (json_int_t)got->begin, "end",
                                           (json_int_t)got->end, "shape", shape_json(got->shape),
                                           "fits", fits, "count", (json_int_t)got->count));
    const double tolerance = fits && want->kind == VALUES ? tolerance_of(&t->expected, want) : 0;
    if (fits) {
        add_wrong(part, got, want, tolerance);
        add_addends(t, part, want, tolerance);
        add_wanted(t, part, got, want);
    }
    return part;
}

static json_t *matrix_of(json_t *matrices, json_t *by_name, const Entry *want)
{
    char key[120], words[LABEL_SIZE];
    const Label *l = &want->label;
    snprintf(key, sizeof key, "%d %d %d %d %d %d %.43s", want->kind, l->what, l->of, l->index,
             l->step, l->detail, l->name);
    json_t *matrix = json_object_get(by_name, key);
    if (matrix)
        return matrix;
    matrix = json_pack("{s:o, s:s, s:s, s:o, s:[]}", "name",
                       picture_text(label_text(&want->label, words)), "kind",
                       want->kind == PARAMETER ? "parameter" : "values", "check",
                       check_names[want->kind == PARAMETER ? INITIAL_VALUES : want->check], "shape",
                       shape_json(want->shape), "parts");
    json_array_append_new(matrices, matrix);
    json_object_set(by_name, key, matrix);
    return matrix;
}

/* Adds this rank's part of a matrix, unless the matrix belongs to another stage. */
static void add_part(Trial *t, const Entry *want, json_t *matrices, json_t *by_name)
{
    const Entry *got = entry_of_rank(t, t->rank, want->kind, want->label);
    if (got || !may_lack(t, want))
        json_array_append_new(json_object_get(matrix_of(matrices, by_name, want), "parts"),
                              part_json(t, got, want));
}

json_t *picture_matrices(const Case *c, const Outcome *outcome)
{
    json_t *matrices = json_array(), *by_name = json_object();
    Trial t = {.c = c, .outcome = outcome};
    for (t.rank = 0; t.rank < c->world; t.rank++) {
        t.expected = expect(c, t.rank, THE_NUMBERS, emulations_of(c));
        for (const Entry *want = NULL; (want = next_entry(t.expected.all, want));)
            if ((want->kind == VALUES || want->kind == PARAMETER) && want->label.step != DIVERGED)
                add_part(&t, want, matrices, by_name);
        expected_free(&t.expected);
        forget_expected(&t);
    }
    json_decref(by_name);
    return matrices;
}
