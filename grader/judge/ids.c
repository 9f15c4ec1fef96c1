/* Lab 3: which ids are looked up wrongly, when the table is split by rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "grader/judge/evidence.h"

/* Is this id the first of the rows that a rank holds, or the last of several? */
typedef struct Border {
    bool known, first, last;
} Border;

static Border border_of(const Trial *t, const char *table, int id)
{
    Border border = {0};
    for (int rank = 0; rank < t->c->world; rank++) {
        const Entry *held = entry_of_rank(t, rank, PARAMETER, table);
        if (!held || held->placement_kind != SHARD || held->placement_dim != 0)
            return (Border){0};
        border.known = true;
        border.first |= held->begin == id;
        border.last |= held->end == id + 1 && held->end > held->begin + 1;
    }
    return border;
}

static bool row_is(const double *row, const double *right, int64_t columns, double tolerance)
{
    for (int64_t i = 0; i < columns; i++)
        if (!(fabs(row[i] - (right ? right[i] : 0)) <= tolerance))
            return false;
    return true;
}

/* Do zeros come out for ids at one border of each rank's rows, and only there? */
bool rows_of_ids(const Evidence *e, char *text, size_t size)
{
    char name[NAME_SIZE], layer[NAME_SIZE], table[NAME_SIZE];
    const Expected *expected = &e->trial->expected;
    int64_t offset = 0, columns = shape_last(e->want->shape), wrong = 0, first = 0, last = 0;
    if (e->trial->c->lab != 3 || sscanf(e->want->name, "output of the %15s", layer) != 1)
        return false;
    snprintf(name, sizeof name, "input%.*s", NAME_SIZE - 8, e->want->name + 6);
    snprintf(table, sizeof table, "%.15s.weight", layer);
    const Entry *ids = find_entry(expected->base[0], expected->used[0], VALUES, name, &offset);
    if (!ids || ids->count * columns != e->count)
        return false;
    for (int64_t i = 0; i < ids->count; i++) {
        const double *row = e->is + i * columns;
        if (row_is(row, e->right + i * columns, columns, e->tolerance))
            continue;
        Border border = border_of(e->trial, table, (int)numbers_of(ids)[i]);
        if (!border.known || !row_is(row, NULL, columns, 0))
            return false;
        wrong++;
        first += border.first;
        last += border.last;
    }
    if (wrong == 0 || (first == wrong) == (last == wrong))
        return false;
    snprintf(text, size,
             "what is zero are the rows of ids that are the %s of those that a rank holds: its rows go from "
             "shard_begin() "
             "to that and their number, the last one left out",
             first == wrong ? "first" : "last");
    return true;
}
