/* The operations that a rank has recorded, as texts. */
#include "grader/judge/report/tape.h"

#include <stdlib.h>

#include "base/language.h"
#include "tensor/tensor.h"

/* The operations of a rank that are shown. `op` points to those of the forward pass. */
typedef struct Shown {
    const TapeOperation *op[RING_OPERATIONS];
    int count;
    const void *outside
        [RING_OPERATIONS]; /* tensors that no shown operation returns, and that have no name */
    int outsiders;
} Shown;

/* Is this a GELU that is computed together with the dropout after it? Then it is not shown on its
 * own. */
static bool is_computed_with_next(const RankCalls *mine, int64_t i)
{
    const TapeOperation *o = &mine->operation[i], *next = o + 1;
    return i + 1 < mine->operations_count && !strcmp(o->name, "gelu") && !next->back &&
           !strcmp(next->name, "gelu and dropout") && next->input[0].tensor == o->input[0].tensor;
}

/* Finds the operations of a rank's first forward pass: they have the first one's tape and label. */
static void find_forward(const RankCalls *mine, Shown *shown)
{
    for (int64_t i = 0; i < mine->operations_count; i++) {
        const TapeOperation *o = &mine->operation[i], *first = shown->count ? shown->op[0] : o;
        if (shown->count &&
            (o->back || o->tape != first->tape || !label_equal(&o->where, &first->where)))
            break;
        if (!o->back && !is_computed_with_next(mine, i))
            shown->op[shown->count++] = o;
    }
}

/* The number of the last operation before index `before` that returns this tensor; 0 if none does.
 * An operation may return its argument. */
static int number_of(const Shown *shown, const void *tensor, int before)
{
    for (int i = before - 1; i >= 0; i--)
        if (shown->op[i]->output.tensor == tensor)
            return i + 1;
    return 0;
}

/* Names a tensor that the operation takes from outside the pass: "x", then "x2". A parameter keeps
 * the last two parts of its name. */
static void name_outside(Shown *shown, const TapeOperation *o, const TapeTensor *a,
                         char name[TAPE_TEXT])
{
    const char *at = a->parameter + strlen(a->parameter);
    for (int dots = 0; at > a->parameter && (at[-1] != '.' || ++dots < 2); at--)
        ;
    if (a->parameter[0]) {
        snprintf(name, TAPE_TEXT, "%s", at);
        return;
    }
    int i = 0;
    while (i < shown->outsiders && shown->outside[i] != a->tensor)
        i++;
    if (i == shown->outsiders && i < RING_OPERATIONS)
        shown->outside[shown->outsiders++] = a->tensor;
    snprintf(name, TAPE_TEXT, "%s",
             !a->integers                        ? "x"
             : !strncmp(o->name, "attention", 9) ? _("mask")
                                                 : _("ids"));
    if (i > 0 && !a->integers)
        append(name, TAPE_TEXT, "%d", i + 1);
}

static void tell_line(const TapeOperation *o, const char *file, char line[64])
{
    const char *at = line_of(o->address);
    const size_t own = strlen(file);
    const bool is_own = !strncmp(at, file, own) && at[own] == ':';
    snprintf(line, 64, "%s", is_own ? at + own + 1 : at);
}

static void tell_tensor(const TapeTensor *a, char shape[TAPE_TEXT], char placement[32])
{
    char text[64];
    snprintf(shape, TAPE_TEXT, "%s", shape_text(a->shape, text));
    snprintf(placement, 32, "%s",
             _(placement_text((Placement){(PlacementKind)a->kind, a->dim}, text)));
}

/* The gradient of a copy is a partial sum. The gradient of a partial sum is the same on every rank.
 * See PlacementKind. */
static int kind_of_gradient(int kind)
{
    return kind == COPIED ? PARTIAL : kind == PARTIAL ? WHOLE : kind;
}

/* "heads 2, factor 0.25" */
static void tell_attributes(const TapeOperation *o, char *text, size_t size)
{
    for (int i = 0; i < MOST_ATTRIBUTES && o->attribute[i].name[0]; i++) {
        const TapeAttribute *a = &o->attribute[i];
        append(text, size, "%s%s ", i ? ", " : "", _(a->name));
        if (a->text[0])
            append(text, size, "%s", a->text);
        else
            append(text, size, "%.6g", a->number);
    }
}

static void forward_row(Shown *shown, int i, const char *file, TapeRow *row)
{
    const TapeOperation *o = shown->op[i];
    row->number = i + 1;
    snprintf(row->name, sizeof row->name, "%s", _(o->name));
    tell_line(o, file, row->line);
    tell_tensor(&o->output, row->shape, row->placement);
    tell_attributes(o, row->with, sizeof row->with);
    for (int k = 0; k < o->inputs; k++) {
        const int number = number_of(shown, o->input[k].tensor, i);
        TapeInput *input = &row->input[row->inputs];
        if (number) {
            append(row->of, sizeof row->of, "%s%d", row->of[0] ? ", " : "", number);
            continue;
        }
        name_outside(shown, o, &o->input[k], input->name);
        tell_tensor(&o->input[k], input->shape, input->placement);
        row->inputs++;
    }
}

static void backward_row(Shown *shown, const TapeOperation *o, int number, const char *file,
                         TapeRow *row)
{
    char name[TAPE_TEXT];
    TapeTensor gradient = o->output;
    gradient.kind = kind_of_gradient(gradient.kind);
    row->number = number;
    snprintf(row->name, sizeof row->name, "%s", _(o->name));
    tell_line(o, file, row->line);
    tell_tensor(&gradient, row->shape, row->placement);
    for (int k = 0; k < o->inputs; k++) {
        const int from = number_of(shown, o->input[k].tensor, number - 1);
        if (!o->input[k].needs_gradient)
            continue;
        if (from)
            snprintf(name, sizeof name, "%d", from);
        else
            name_outside(shown, o, &o->input[k], name);
        append(row->to, sizeof row->to, "%s%s", row->to[0] ? ", " : "", name);
    }
}

/* Adds the gradients of the shown operations' results, in the order in which they were complete,
 * and lists the operations that no gradient reached. */
static void add_backward(const RankCalls *mine, Shown *shown, const char *file, TapePass *pass)
{
    bool reached[RING_OPERATIONS + 1] = {0};
    for (int64_t i = 0; i < mine->operations_count; i++) {
        const TapeOperation *o = &mine->operation[i];
        const int number = o->back && o->tape == shown->op[0]->tape
                               ? number_of(shown, o->output.tensor, shown->count)
                               : 0;
        if (!number || reached[number])
            continue;
        if (!pass->backward)
            label_text(&o->where, pass->where[1]);
        reached[number] = true;
        backward_row(shown, o, number, file, &pass->row[1][pass->backward++]);
    }
    for (int i = 0; i < shown->count; i++) {
        if (shown->op[i]->output.needs_gradient && !reached[i + 1])
            append(pass->without, sizeof pass->without, "%s%d", pass->without[0] ? ", " : "",
                   i + 1);
    }
}

TapePass *tape_pass(const Calls *calls, int rank, const char *file)
{
    const RankCalls *mine = &calls->rank[rank];
    TapePass *pass = calloc(1, sizeof *pass);
    Shown *shown = calloc(1, sizeof *shown);
    find_forward(mine, shown);
    for (int i = 0; i < shown->count; i++)
        forward_row(shown, i, file, &pass->row[0][i]);
    pass->forward = shown->count;
    if (shown->count) {
        label_text(&shown->op[0]->where, pass->where[0]);
        add_backward(mine, shown, file, pass);
    }
    free(shown);
    return pass;
}
