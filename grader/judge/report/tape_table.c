/* A rank's tape as a table. */
#include "grader/judge/report/tape.h"

#include "base/language.h"

/* The widths of a table's columns. */
typedef struct Widths {
    int line, name, shape, placement;
} Widths;

static void widen(int *width, const char *text, int before)
{
    const int is = characters_of(text) + before;
    *width = is > *width ? is : *width;
}

/* "linear of 1, 2" */
static void operation_text(const TapeRow *row, char text[2 * TAPE_TEXT])
{
    snprintf(text, 2 * TAPE_TEXT, row->of[0] ? _("%s of %s") : "%s", row->name, row->of);
}

static Widths widths_of(const TapeRow *rows, int count)
{
    Widths w = {characters_of(_("line")), characters_of(_("operation")), characters_of(_("shape")),
                characters_of(_("placement"))};
    char text[2 * TAPE_TEXT];
    for (int i = 0; i < count; i++) {
        operation_text(&rows[i], text);
        widen(&w.line, rows[i].line, 0);
        widen(&w.name, text, 0);
        widen(&w.shape, rows[i].shape, 0);
        widen(&w.placement, rows[i].placement, 0);
        for (int k = 0; k < rows[i].inputs; k++) {
            widen(&w.name, rows[i].input[k].name, 2);
            widen(&w.shape, rows[i].input[k].shape, 0);
        }
    }
    return w;
}

static void print_head(FILE *out, Page page, const Widths *w, const char *where, const char *last)
{
    const Paint paint = paint_of(page);
    fprintf(out, "\n%s-- %s%s\n", paint.strong, where, paint.off);
    fprintf(out, "%s     %*s  %-*s  %-*s  %-*s%s%s\n", paint.quiet, padded_to(_("line"), w->line),
            _("line"), padded_to(_("operation"), w->name), _("operation"),
            padded_to(_("shape"), w->shape), _("shape"),
            last[0] ? padded_to(_("placement"), w->placement) : 0, _("placement"), last, paint.off);
}

static void print_forward(FILE *out, Page page, const Widths *w, const TapeRow *row)
{
    const Paint paint = paint_of(page);
    char text[2 * TAPE_TEXT];
    operation_text(row, text);
    fprintf(out, "%4d %*s  %-*s  %-*s  %s\n", row->number, w->line, row->line,
            padded_to(text, w->name), text, w->shape, row->shape, row->placement);
    if (row->with[0])
        fprintf(out, "%s     %*s    %s%s\n", paint.quiet, w->line, "", row->with, paint.off);
    for (int k = 0; k < row->inputs; k++) {
        const TapeInput *in = &row->input[k];
        fprintf(out, "%s     %*s    %-*s  %-*s  %s%s\n", paint.quiet, w->line, "",
                padded_to(in->name, w->name - 2), in->name, w->shape, in->shape, in->placement,
                paint.off);
    }
}

/* Breaks the list of the gradient's destinations after a comma, to fit a terminal of 80 columns. */
static void print_backward(FILE *out, const Widths *w, const TapeRow *row)
{
    enum { COLUMNS = 80 };
    int column = fprintf(out, "%4d %*s  ", row->number, w->line, row->line) + w->name + w->shape +
                 w->placement + 8;
    const int indent = column;
    fprintf(out, "%-*s  %-*s  %-*s  → ", padded_to(row->name, w->name), row->name, w->shape,
            row->shape, padded_to(row->placement, w->placement), row->placement);
    for (const char *at = row->to; *at;) {
        const int length = (int)strcspn(at, ",") + (strchr(at, ',') ? 1 : 0);
        if (at > row->to && column + length > COLUMNS)
            column = fprintf(out, "\n%*s", indent, "") - 1;
        column += fprintf(out, "%.*s", length, at);
        at += length;
        if (*at == ' ' && column < COLUMNS)
            column += fprintf(out, " "), at++;
        else if (*at == ' ')
            at++;
    }
    fprintf(out, "\n");
}

void tape_print(FILE *out, Page page, const TapePass *pass)
{
    const Widths w = widths_of(pass->row[0], pass->forward),
                 back = widths_of(pass->row[1], pass->backward);
    char text[2 * TAPE_TEXT], last[64];
    if (!pass->forward) {
        fprintf(out, "\n%s\n", _("this rank has recorded no operation of a lab on its tape"));
        return;
    }
    print_head(out, page, &w, pass->where[0], "");
    for (int i = 0; i < pass->forward; i++)
        print_forward(out, page, &w, &pass->row[0][i]);
    if (pass->backward) {
        snprintf(last, sizeof last, "  → %s", _("goes to"));
        snprintf(text, sizeof text, _("%s: the gradient of each result"), pass->where[1]);
        print_head(out, page, &back, text, last);
    }
    for (int i = 0; i < pass->backward; i++)
        print_backward(out, &back, &pass->row[1][i]);
    if (pass->without[0]) {
        snprintf(text, sizeof text, _("no gradient reaches the result of %s"), pass->without);
        fprintf(out, "\n");
        print_indented(out, page, text, "");
    }
}
