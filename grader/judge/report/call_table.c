/* Calls of several ranks as a table. */
#include "grader/judge/report/verdict.h"

#include <stdlib.h>

#include "base/language.h"
#include "grader/labs/labels.h"

enum { LABEL = 256 };

/* The calls that met: at most one of each rank. */
typedef struct Row {
    const Call *call[MAX_RANKS];
    int64_t time;
    bool ready; /* none of them comes later on another rank */
} Row;

typedef struct Table {
    const Calls *calls;
    const char *file; /* the lab's file */
    Paint paint;
    Difference first;
    bool brief;              /* a cell has only the line's number; the head says so */
    int64_t next[MAX_RANKS]; /* index into each rank's calls */
    Row *row;
    int64_t rows;
    int label_width, cell_width[MAX_RANKS];
} Table;

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

static const Call *first_of(const Row *row)
{
    int r = 0;
    while (r < MAX_RANKS - 1 && !row->call[r])
        r++;
    return row->call[r];
}

static const Call *head_of(const Table *t, int rank)
{
    const RankCalls *mine = &t->calls->rank[rank];
    return t->next[rank] < mine->count ? &mine->call[t->next[rank]] : NULL;
}

static bool same_operation(const Call *a, const Call *b)
{
    return !strcmp(a->name, b->name) && a->starts == b->starts;
}

/* Calls of a group match by their number. Local calls, such as waits, match the same calls of other
 * ranks on the same line. */
static bool belong_together(const Call *a, const Call *b)
{
    if (a->number || b->number)
        return a->number == b->number && a->group == b->group;
    return a->rule == LOCAL && b->rule == LOCAL && a->address == b->address &&
           same_operation(a, b) && label_equal(&a->where, &b->where);
}

/* Fills a row with this rank's next call and the next calls of other ranks that match it. */
static void gather(const Table *t, int rank, Row *row)
{
    const Call *mine = head_of(t, rank);
    *row = (Row){.time = mine->time, .ready = true};
    for (int r = 0; r < t->calls->ranks; r++) {
        const Call *other = head_of(t, r);
        if (!other)
            continue;
        if (other == mine || belong_together(mine, other)) {
            row->call[r] = other;
            row->time = other->time < row->time ? other->time : row->time;
            continue;
        }
        bool may_come = mine->number && (mine->members >> r & 1);
        for (int64_t i = t->next[r]; may_come && row->ready && i < t->calls->rank[r].count; i++)
            row->ready = !belong_together(mine, &t->calls->rank[r].call[i]);
    }
}

/* Groups that do the same side by side share a row. */
static bool alongside(const Row *row, const Row *other)
{
    const Call *a = first_of(row), *b = first_of(other);
    char one[96], two[96];
    return a->number && a->number == b->number && !(a->members & b->members) &&
           same_operation(a, b) && label_equal(&a->where, &b->where) &&
           !strcmp(call_what(a, one), call_what(b, two));
}

static void add_those_alongside(const Table *t, Row *row)
{
    for (int r = 0; r < t->calls->ranks; r++) {
        Row other;
        if (row->call[r] || !head_of(t, r))
            continue;
        gather(t, r, &other);
        if (!other.ready || !alongside(row, &other))
            continue;
        for (int k = 0; k < t->calls->ranks; k++)
            if (other.call[k])
                row->call[k] = other.call[k];
    }
}

static bool is_beneath(const Row *row, const Row *last)
{
    return last && label_equal(&first_of(row)->where, &first_of(last)->where);
}

/* Prefers a complete row, then a row beneath the heading of the last one (ranks may be in different
 * steps at the same time), then the earliest. */
static bool comes_before(const Row *row, const Row *other, const Row *last)
{
    if (row->ready != other->ready)
        return row->ready;
    if (is_beneath(row, last) != is_beneath(other, last))
        return is_beneath(row, last);
    return row->time < other->time;
}

/* If ranks wait for each other, no row is complete, and the earliest call becomes a row. */
static bool next_row(Table *t, Row *best)
{
    const Row *last = t->rows > 0 ? best - 1 : NULL;
    bool found = false;
    for (int r = 0; r < t->calls->ranks; r++) {
        Row row;
        if (!head_of(t, r))
            continue;
        gather(t, r, &row);
        if (!found || comes_before(&row, best, last))
            *best = row;
        found = true;
    }
    if (found && best->ready)
        add_those_alongside(t, best);
    for (int r = 0; r < t->calls->ranks; r++)
        t->next[r] += found && best->call[r];
    return found;
}

static void make_rows(Table *t)
{
    int64_t all = 1;
    for (int r = 0; r < t->calls->ranks; r++)
        all += t->calls->rank[r].count;
    t->row = malloc((size_t)all * sizeof *t->row);
    while (next_row(t, &t->row[t->rows]))
        t->rows++;
}

/* ---- text ----------------------------------------------------------------------------------------------------------- */

static void append_groups(const Row *row, char text[LABEL])
{
    uint64_t told = 0;
    char group[32];
    for (int r = 0; r < MAX_RANKS; r++) {
        const Call *call = row->call[r];
        if (!call || !call->members || (told & call->members))
            continue;
        append(text, LABEL, "%s%s", told ? " " : _(" of "), group_text(call, group));
        told |= call->members;
    }
}

static void line_label(const Row *row, char text[LABEL])
{
    char name[64], what[96];
    snprintf(text, LABEL, "%s", call_name(first_of(row), name));
    append_groups(row, text);
    append(text, LABEL, "%s%s", call_what(first_of(row), what)[0] ? ", " : "", what);
}

/* How a call differs from the one that names its row. */
static void append_other(const Call *first, const Call *call, char text[LABEL])
{
    char name[64], what[96], first_name[64], first_what[96];
    bool other_name = strcmp(call_name(call, name), call_name(first, first_name)) != 0,
         other_what = strcmp(call_what(call, what), call_what(first, first_what)) != 0;
    if (other_name || other_what)
        append(text, LABEL, ": %s%s%s", other_name ? name : "", other_name && what[0] ? ", " : "",
               what);
}

/* Writes the line, and how the call differs from the row's label. In the lab's own file, the line's
 * number suffices. */
static void cell_of(const Table *t, const Row *row, int rank, char text[LABEL])
{
    const Call *call = row->call[rank];
    text[0] = '\0';
    if (!call)
        return;
    const char *line = line_of(call->address);
    size_t own = strlen(t->file);
    if (!strncmp(line, t->file, own) && line[own] == ':')
        append(text, LABEL, t->brief ? "%s" : _("line %s"), line + own + 1);
    else
        append(text, LABEL, "%s", line[0] ? line : t->brief ? "-" : _("(kit)"));
    append_other(first_of(row), call, text);
    if (!call->returned)
        append(text, LABEL, "%s", _(", waits"));
    else if (call->starts && !call->completed)
        append(text, LABEL, "%s", _(", still open"));
}

static const char *rank_name(const Table *t, int rank, char text[LABEL])
{
    snprintf(text, LABEL, t->brief ? "%d" : _("rank %d"), rank);
    return text;
}

static const char *head_of_calls(const Table *t)
{
    return t->brief ? _("call, and its line on each rank (-: the kit)") : _("call");
}

/* Finds the widths of the columns, and returns the table's width. */
static int measure(Table *t)
{
    char text[LABEL];
    t->label_width = characters_of(head_of_calls(t));
    for (int r = 0; r < t->calls->ranks; r++)
        t->cell_width[r] = characters_of(rank_name(t, r, text));
    for (int64_t i = 0; i < t->rows; i++) {
        line_label(&t->row[i], text);
        if (characters_of(text) > t->label_width)
            t->label_width = characters_of(text);
        for (int r = 0; r < t->calls->ranks; r++) {
            cell_of(t, &t->row[i], r, text);
            if (characters_of(text) > t->cell_width[r])
                t->cell_width[r] = characters_of(text);
        }
    }
    int width = 3 + t->label_width;
    for (int r = 0; r < t->calls->ranks; r++)
        width += 2 + t->cell_width[r];
    return width;
}

static bool is_first_difference(const Table *t, const Row *row)
{
    for (int r = 0; r < t->calls->ranks; r++)
        if (row->call[r] && (row->call[r] == t->first.call[0] || row->call[r] == t->first.call[1]))
            return true;
    return false;
}

/* On a page too narrow for the table, a label that is too long gets a line of its own. */
static void fit(Table *t, int columns)
{
    t->brief = measure(t) > columns;
    const int excess = t->brief ? measure(t) - columns : 0, least = characters_of(head_of_calls(t));
    if (excess > 0)
        t->label_width = t->label_width - excess < least ? least : t->label_width - excess;
}

/* Leaves out blanks at the end of a line. */
static void print_cell(FILE *out, const Table *t, int rank, const char *text, int *blanks)
{
    if (text[0]) {
        fprintf(out, "%*s  %s", *blanks, "", text);
        *blanks = t->cell_width[rank] - characters_of(text);
    } else {
        *blanks += t->cell_width[rank] + 2;
    }
}

static void print_row(FILE *out, const Table *t, const Row *row)
{
    char text[LABEL];
    int blanks = 0;
    line_label(row, text);
    const bool differs = is_first_difference(t, row);
    if (characters_of(text) > t->label_width)
        blanks = 3 + t->label_width;
    fprintf(out, "%s%s %-*s%s", differs ? t->paint.bad : "", differs ? ">>" : "  ",
            padded_to(text, t->label_width), text, blanks ? "\n" : "");
    for (int r = 0; r < t->calls->ranks; r++) {
        cell_of(t, row, r, text);
        print_cell(out, t, r, text, &blanks);
    }
    fprintf(out, "%s\n", differs ? t->paint.off : "");
}

static void print_head(FILE *out, const Table *t)
{
    int blanks = 0;
    char name[LABEL];
    fprintf(out, "\n   %-*s", padded_to(head_of_calls(t), t->label_width), head_of_calls(t));
    for (int r = 0; r < t->calls->ranks; r++)
        print_cell(out, t, r, rank_name(t, r, name), &blanks);
    fprintf(out, "\n");
}

void table_print(FILE *out, Page page, const Outcome *outcome, const char *file)
{
    char words[LABEL_SIZE];
    const Calls *calls = outcome->calls;
    Table t = {.calls = calls,
               .file = file,
               .paint = paint_of(page),
               .first = first_difference(calls, true, false)};
    const Label *where = NULL;
    const Entry *passed = NULL;
    make_rows(&t);
    fit(&t, page.columns);
    print_head(out, &t);
    for (int r = 0; r < calls->ranks; r++)
        if (calls->rank[r].first)
            fprintf(out, _("-- the first %lld calls of rank %d were not kept\n"),
                    (long long)calls->rank[r].first, r);
    for (int64_t i = 0; i < t.rows; i++) {
        const Call *first = first_of(&t.row[i]);
        if (!where || !label_equal(&first->where, where)) {
            silent_passes_print(out, outcome, &passed, &first->where);
            fprintf(out, "%s-- %s%s\n", t.paint.strong, label_text(&first->where, words),
                    t.paint.off);
        }
        where = &first->where;
        print_row(out, &t, &t.row[i]);
    }
    silent_passes_print(out, outcome, &passed, NULL);
    if (t.rows == 0)
        fprintf(out, "%s", _("-- no calls\n"));
    free(t.row);
}
