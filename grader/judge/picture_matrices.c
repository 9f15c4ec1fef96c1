/* Which rank holds which part of each matrix, and which elements are wrong. */
#include "grader/judge/commands.h"
#include "grader/judge/diagnose/trial.h"
#include <math.h>

enum { RUNS_SHOWN = 3000, ELEMENTS_TOLD = 5 };

static json_t *shape_json(Shape shape)
{
    json_t *sizes = json_array();
    for (int i = 0; i < shape.rank; i++)
        json_array_append_new(sizes, json_integer(shape.size[i]));
    return sizes;
}

/* As the verdict finds them: values with their tolerance, a parameter's initial values exactly. */
static bool is_wrong(const Entry *want, double is, double right, double tolerance)
{
    return want->kind == PARAMETER ? is != (double)(float)right : !(fabs(is - right) <= tolerance);
}

/* Wrong elements by their index in the full tensor: the first, and the length of the run. */
static void add_wrong(json_t *part, const Entry *got, const Entry *want, double tolerance)
{
    json_t *runs = json_array(), *first = json_array();
    int64_t count = 0, begin = -1, length = 0;
    for (int64_t i = 0; i <= got->count; i++) {
        const int64_t at = i < got->count ? global_index(got, i) : -1;
        const bool wrong =
            i < got->count && is_wrong(want, numbers_of(got)[i], numbers_of(want)[at], tolerance);
        if (wrong && count++ < ELEMENTS_TOLD)
            json_array_append_new(first,
                                  json_pack("{s:I, s:o, s:o}", "at", (json_int_t)at, "is",
                                            json_sprintf("%.7g", numbers_of(got)[i]), "expected",
                                            json_sprintf("%.7g", numbers_of(want)[at])));
        if (length && (!wrong || at != begin + length)) {
            if (json_array_size(runs) < RUNS_SHOWN)
                json_array_append_new(runs,
                                      json_pack("[I, I]", (json_int_t)begin, (json_int_t)length));
            length = 0;
        }
        if (wrong && !length++)
            begin = at;
    }
    json_object_set_new(part, "wrong", json_integer(count));
    json_object_set_new(part, "runs", runs);
    json_object_set_new(part, "first", first);
}

/* A rank may have written anything. */
static const char *placement_name(int kind)
{
    static const char *const names[] = {"whole",   "copied",  "shard",
                                        "partial", "unknown", "undecided"};
    return kind >= 0 && kind < (int)(sizeof names / sizeof *names) ? names[kind] : "unknown";
}

static json_t *part_json(const Trial *t, const Entry *got, const Entry *want)
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
    if (fits)
        add_wrong(part, got, want, want->kind == VALUES ? tolerance_of(&t->expected, want) : 0);
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

/* What another stage holds is no part of this rank's. */
static void add_part(const Trial *t, const Entry *want, json_t *matrices, json_t *by_name)
{
    const Entry *got = entry_of_rank(t, t->rank, want->kind, want->label);
    if (got || !stage_may_lack(t, want))
        json_array_append_new(json_object_get(matrix_of(matrices, by_name, want), "parts"),
                              part_json(t, got, want));
}

json_t *picture_matrices(const Case *c, const Outcome *outcome)
{
    json_t *matrices = json_array(), *by_name = json_object();
    Trial t = {.c = c, .outcome = outcome};
    for (t.rank = 0; t.rank < c->world; t.rank++) {
        t.expected = expect(c, t.rank, NO_MISTAKE, emulations_of(c));
        for (const Entry *want = NULL; (want = next_entry(t.expected.all, want));)
            if (want->kind == VALUES || want->kind == PARAMETER)
                add_part(&t, want, matrices, by_name);
        expected_free(&t.expected);
    }
    json_decref(by_name);
    return matrices;
}
