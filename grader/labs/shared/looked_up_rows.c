/* Labs 3 and 21: finds the ids that are looked up incorrectly. */
#include "grader/labs/shared/looked_up_rows.h"

#include <math.h>
#include <stdlib.h>

#include "grader/labs/groups.h"
#include "grader/labs/vocabulary.h"

/* Is the table split by rows? *last: is this id the last of several rows that some rank holds? */
static bool is_by_rows(const Trial *t, Label table, int id, bool *last)
{
    *last = false;
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *held = entry_of_rank(t, rank, PARAMETER, table);
        if (!held || held->placement_kind != SHARD || held->placement_dim != 0)
            return false;
        *last = *last || (held->end == id + 1 && held->end > held->begin + 1);
    }
    return true;
}

static bool row_is(const double *row, const double *right, int64_t columns, double tolerance)
{
    for (int64_t i = 0; i < columns; i++)
        if (!(fabs(row[i] - (right ? right[i] : 0)) <= tolerance))
            return false;
    return true;
}

/* The result of a lookup and its ids. */
typedef struct Lookup {
    Label table;
    int layer;
    const Entry *ids;
    int64_t rows, columns;
} Lookup;

static Label table_of_layer(int layer)
{
    char name[32];
    snprintf(name, sizeof name, "%s.weight", layer_names[layer]);
    return label_named(name);
}

static bool find_lookup(const Evidence *e, Lookup *l)
{
    l->ids = input_of(e);
    const bool of_model = l->ids && l->ids->label.of == OF_VOCABULARY;
    if (!(kind_of_case(e->c)->mistakes & IN_TABLE_ROWS) || !l->ids ||
        (of_model ? l->ids->label.index != EMBEDDING : l->ids->label.of != A_LAYER))
        return false;
    l->layer = layer_of(&l->ids->label);
    l->table = table_of_layer(l->layer);
    l->rows = table_rows_of(e->c, l->layer);
    l->columns = shape_last(e->want->shape);
    return l->ids->count * l->columns == e->count;
}

static bool is_right_row(const Evidence *e, const Lookup *l, int64_t i)
{
    return row_is(e->is + i * l->columns, e->right + i * l->columns, l->columns, e->tolerance);
}

/* Are the results zero for all ids that are the last of a rank's rows, and only there? */
static bool zero_at_last_rows(const Evidence *e, const Lookup *l)
{
    int64_t lost = -1;
    for (int64_t i = 0; i < l->ids->count; i++) {
        bool last;
        if (!is_by_rows(e->trial, l->table, (int)numbers_of(l->ids)[i], &last) ||
            last == is_right_row(e, l, i) ||
            (last && !row_is(e->is + i * l->columns, NULL, l->columns, 0)))
            return false;
        lost = last && lost < 0 ? i : lost;
    }
    return lost >= 0 &&
           says(e,
                _("the outputs of id %.0f, the last of a rank's rows, are zero: the `end` of "
                  "ids_between is the first id after the rank's own, shard_begin() plus the "
                  "number of its rows"),
                numbers_of(l->ids)[lost]);
}

/* The table in the step of this output. */
static double *table_of(const Evidence *e, const Lookup *l)
{
    const Case *c = e->c;
    const int step = e->want->label.step;
    const Parameter p = {.name = l->table.name, .shape = SHAPE(l->rows, l->columns)};
    double *rows = calloc((size_t)(l->rows * l->columns), sizeof *rows);
    for (int64_t i = 0; i < l->rows * l->columns; i++)
        rows[i] = weight_in_step(c, &p, step < STEPS ? step : 1, i);
    return rows;
}

/* Finds the table rows whose sum `row` is: none (it is zero), one, or two. Returns their number, or
 * -1. */
static int made_of_rows(const Evidence *e, const Lookup *l, const double *table, const double *row,
                        int found[2])
{
    double *rest = calloc((size_t)l->columns, sizeof *rest);
    int rows = row_is(row, NULL, l->columns, 0) ? 0 : -1;
    for (int a = 0; a < l->rows && rows < 0; a++) {
        for (int64_t i = 0; i < l->columns; i++)
            rest[i] = row[i] - table[a * l->columns + i];
        found[0] = found[1] = a;
        rows = row_is(rest, NULL, l->columns, e->tolerance) ? 1 : -1;
        for (int b = a; b < l->rows && rows < 0; b++)
            if (row_is(rest, table + b * l->columns, l->columns, 2 * e->tolerance)) {
                found[1] = b;
                rows = 2;
            }
    }
    free(rest);
    return rows;
}

/* Are the rows that are wrong here right on some other rank? */
static bool another_has(const Evidence *e, const Lookup *l)
{
    const Trial *t = e->trial;
    for (int64_t i = 0; i < l->ids->count; i++) {
        bool found = is_right_row(e, l, i);
        for (int rank = 0; rank < e->c->world && !found; rank++) {
            const Entry *got = entry_of_rank(t, rank, VALUES, e->want->label);
            found = got && got->count == e->count &&
                    row_is(numbers_of(got) + i * l->columns, e->right + i * l->columns, l->columns,
                           e->tolerance);
        }
        if (!found)
            return false;
    }
    return true;
}

/* Are all wrong rows sums of table rows? Reports one that sums the most table rows, because it says
 * the most. */
static bool other_rows(const Evidence *e, const Lookup *l)
{
    int count = 0, most = -1, id = 0, found[2], shown[2] = {0, 0};
    double *table = table_of(e, l);
    for (int64_t i = 0; i < l->ids->count && count >= 0; i++) {
        if (is_right_row(e, l, i))
            continue;
        count = made_of_rows(e, l, table, e->is + i * l->columns, found);
        if (count > most) {
            most = count;
            id = (int)numbers_of(l->ids)[i];
            memcpy(shown, found, sizeof shown);
        }
    }
    free(table);
    if (count < 0 || most < 0)
        return false;
    if (most == 0 && another_has(e, l))
        return says(e,
                    _("the rows that other ranks have looked up are missing, such as that of id "
                      "%d: all_reduce (g) adds what the ranks have"),
                    id);
    bool last;
    const bool by_rows = is_by_rows(e->trial, l->table, id, &last);
    if (most == 0)
        return says(e, _("the result is zero for some ids, such as %d%s"), id,
                    by_rows
                        ? _(": no rank looks them up (each looks up those from shard_begin() to "
                            "before shard_begin() plus the number of its rows), or the rows that a "
                            "rank has found are not added (g)")
                        : "");
    if (most == 1)
        return says(e, _("looking up id %d returns row %d of the table%s"), id, shown[0],
                    by_rows ? _(": a rank's row 0 is row shard_begin() of the table") : "");
    return says(e, _("id %d returns the sum of rows %d and %d of the table%s"), id, shown[0],
                shown[1],
                by_rows ? _(": each rank looks up the ids whose rows it holds, from shard_begin() "
                            "on, and returns zeros for all others")
                        : "");
}

/* Adds to `row` what a rank looks up for this id if it computes its first row as its rank times the
 * number of its rows. Returns false if the table is not split by rows. */
static bool add_multiple_of_rows(const Evidence *e, const Lookup *l, const double *table, int rank,
                                 int64_t id, double *row)
{
    const Entry *held = entry_of_rank(e->trial, rank, PARAMETER, l->table);
    if (!held || held->placement_kind != SHARD || held->placement_dim != 0)
        return false;
    const int64_t rows = held->end - held->begin,
                  at = id - place_in(tp_group(e->c, rank), rank) * rows;
    for (int64_t i = 0; at >= 0 && at < rows && i < l->columns; i++)
        row[i] += table[(held->begin + at) * l->columns + i];
    return true;
}

/* Does each rank compute its first row as its rank times the number of its rows? That is right if
 * all ranks hold the same number of rows. */
static bool begins_at_multiple(const Evidence *e, const Lookup *l)
{
    const Members ranks = tp_group(e->c, e->trial->rank);
    double *table = table_of(e, l), *row = malloc((size_t)l->columns * sizeof *row + 1);
    bool fits = true;
    for (int64_t i = 0; i < l->ids->count && fits; i++) {
        memset(row, 0, (size_t)l->columns * sizeof *row);
        for (int k = 0; k < ranks.count && fits; k++)
            fits = add_multiple_of_rows(e, l, table, ranks.first + k * ranks.stride,
                                        (int64_t)numbers_of(l->ids)[i], row);
        fits = fits && row_is(e->is + i * l->columns, row, l->columns, e->tolerance);
    }
    free(row);
    free(table);
    return fits &&
           says(e, _("each rank computes its first row as its rank times the number of its rows, "
                     "but the last ranks may hold fewer: a rank's rows begin with row "
                     "shard_begin()"));
}

static bool rows_of_ids(const Evidence *e)
{
    Lookup l;
    return find_lookup(e, &l) &&
           (begins_at_multiple(e, &l) || zero_at_last_rows(e, &l) || other_rows(e, &l));
}

static int64_t times_of(const Entry *ids, int64_t id)
{
    int64_t times = 0;
    for (int64_t i = 0; i < ids->count; i++)
        times += (int64_t)numbers_of(ids)[i] == id;
    return times;
}

static bool is_gradient_of_table(const Evidence *e)
{
    const Label *label = &e->want->label;
    return kind_of_case(e->c)->mistakes & IN_TABLE_ROWS && label->of == A_PARAMETER &&
           label->what == GRADIENT_OF &&
           (!strcmp(label->name, table_of_layer(0).name) ||
            !strcmp(label->name, table_of_layer(1).name));
}

/* The label of the ids that a table's lookup read, or of its result. */
static Label of_lookup(const Evidence *e, What what, int layer, int step)
{
    Label label = label_of(what, OF_VOCABULARY, EMBEDDING, step);
    label.detail = layer;
    return kind_of_case(e->c)->mistakes & IN_VOCABULARY ? label
                                                        : label_of(what, A_LAYER, layer, step);
}

/* For the gradient of a table: was its lookup already wrong? */
bool lookup_was_wrong(const Evidence *e)
{
    if (!is_gradient_of_table(e))
        return false;
    const Label label = of_lookup(e, OUTPUT_OF, layer_of(&e->want->label), e->want->label.step);
    const Entry *want = find_entry(e->trial->expected.all, VALUES, label),
                *got = entry_of_rank(e->trial, e->trial->rank, VALUES, label);
    if (!want || !got || !has_numbers(got, want) || got->count != want->count)
        return false;
    Evidence output = *e;
    output.got = got;
    output.want = want;
    output.is = numbers_of(got);
    output.right = numbers_of(want);
    output.count = got->count;
    output.tolerance = tolerance_of(&e->trial->expected, want);
    look_over(&output);
    return output.wrong > 0 && rows_of_ids(&output);
}

/* The sum, in this column, of the expected rows that other ranks hold. */
static double sum_of_others(const Evidence *e, int64_t column)
{
    const int64_t columns = shape_last(e->want->shape),
                  rows = shape_count(e->want->shape) / columns;
    double sum = 0;
    for (int64_t row = 0; row < rows; row++)
        if (row < e->got->begin || row >= e->got->end)
            sum += numbers_of(e->want)[row * columns + column];
    return sum;
}

/* For the gradient of a table split by rows: did one row get the gradients of all ids that other
 * ranks hold? */
static bool row_of_other_ids(const Evidence *e)
{
    const int64_t columns = shape_last(e->want->shape), at = e->first_wrong / columns * columns;
    if (!is_gradient_of_table(e) || !all_outputs_right(e) || e->got->placement_kind != SHARD ||
        e->got->placement_dim != 0 || at >= e->count)
        return false;
    for (int64_t i = 0; i < e->count; i++) {
        const bool here = i >= at && i < at + columns;
        const double others = here ? sum_of_others(e, i - at) : 0;
        if (!(fabs(e->is[i] - e->right[i] - others) <= 2 * e->tolerance))
            return false;
    }
    return says(
        e,
        _("row %lld also gets the gradients of all ids that other ranks hold: forward sets "
          "its results for these ids to zero, but the tape does not know this. ids_between() "
          "turns these ids into NO_ID, which has no gradient"),
        (long long)e->got->begin + at / columns);
}

/* For the gradient of a table: are only the rows of repeated ids wrong? */
static bool rows_of_repeated_ids(const Evidence *e)
{
    const Label *label = &e->want->label;
    int64_t columns = shape_last(e->want->shape), repeated = -1;
    if (!is_gradient_of_table(e) || !all_outputs_right(e))
        return false;
    const Entry *ids = find_entry(e->trial->expected.all, VALUES,
                                  of_lookup(e, INPUT_OF, layer_of(&e->want->label), label->step));
    bool others_right = false;
    for (int64_t i = 0; ids && i < e->count; i++) {
        int64_t id = global_index(e->got, i) / columns, times = times_of(ids, id);
        bool right = is_right(e, i);
        if (!right && times < 2)
            return false;
        others_right = others_right || (right && times == 1);
        repeated = right ? repeated : id;
    }
    if (repeated < 0 || !others_right)
        return false;
    return says(e,
                _("only rows of ids that occur more than once are wrong, such as that of id %lld: "
                  "a row's gradient is the sum over all positions of its id"),
                (long long)repeated);
}

Finder *const table_reasons[] = {input_altered, not_a_number, lookup_was_wrong, NULL};
Finder *const table_more_reasons[] = {rows_of_ids, row_of_other_ids, rows_of_repeated_ids, NULL};
