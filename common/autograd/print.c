/* tensor_print: a rank's part of a tensor in a few lines. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "autograd/tape.h"
#include "backend/host_view.h"
#include "base/language.h"
#include "base/run.h"

enum { ROWS = 8, COLUMNS = 6 };

/* The i-th index to print. If there are more than `most`, the middle is left out; returns -1 for
 * the gap. */
static int64_t shown(int64_t i, int64_t count, int most)
{
    if (count <= most || i < most / 2)
        return i;
    return i == most / 2 ? -1 : count - most + i;
}

/* "1 [1,0,:]", padded to the width of the last label. It begins with the rank, because lines of
 * several ranks may alternate. */
static void print_place(FILE *to, int rank, Shape shape, int64_t row)
{
    fprintf(to, "%d ", rank);
    for (int64_t d = 0, below = shape_count(shape) / shape_last(shape); d < shape.rank - 1; d++) {
        below /= shape.size[d];
        int width = snprintf(NULL, 0, "%" PRId64, shape.size[d] - 1);
        fprintf(to, "%s%*" PRId64 ",", d == 0 ? "[" : "", width, row / below % shape.size[d]);
    }
    fprintf(to, shape.rank > 1 ? ":]" : "[:]");
}

/* numbers: NULL if x holds ids. */
static void print_row(FILE *to, const Tensor *x, const real *numbers, int64_t first,
                      int64_t columns)
{
    for (int64_t c = 0; c < columns && c < COLUMNS; c++) {
        int64_t at = shown(c, columns, COLUMNS);
        if (at < 0)
            fprintf(to, "        ...");
        else if (numbers)
            fprintf(to, " %10.4g", (double)numbers[first + at]);
        else
            fprintf(to, " %10" PRId32, ints(x)[first + at]);
    }
    fprintf(to, "\n");
}

void tensor_print(const char *name, Tensor *x, const Mesh *mesh)
{
    char *all = NULL;
    size_t size;
    must_exist("tensor_print", x);
    must_exist("tensor_print", mesh);
    FILE *to = open_memstream(&all, &size);
    const Tensor *numbers = as_reals(x);
    HostView view = {0};
    if (numbers->dtype == REAL)
        view = host_view_read(reals(numbers), tensor_count(x));
    const int rank = mesh->world ? group_rank(mesh->world) : mesh->tp_rank;
    int64_t columns = shape_last(x->shape), rows = columns > 0 ? tensor_count(x) / columns : 0;
    char place[200];
    run_place(place, sizeof place);
    fprintf(to, _("rank %d: %.60s %s"), rank, name, TENSOR_TEXT(x));
    fprintf(to, "%s%s\n", place[0] ? ", " : "", place);
    for (int64_t r = 0; r < rows && r < ROWS; r++) {
        int64_t row = shown(r, rows, ROWS);
        if (row < 0) {
            fprintf(to, "%d ...\n", rank);
            continue;
        }
        print_place(to, rank, x->shape, row);
        print_row(to, x, view.numbers, row * columns, columns);
    }
    if (numbers->dtype == REAL)
        host_view_end(&view);
    fclose(to);
    fputs(all, stdout);
    fflush(stdout);
    free(all);
}
