#include "train/table_rows.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"

enum {
    WORTH_IT = 1 << 20 /* numbers: below, asking the others takes as long as sending them all */
};

struct TableRows {
    Tensor *gradient;
    int64_t rows, columns;
    int32_t *index; /* [rows] of the rows in use, in order */
    int64_t count;
    uint8_t *used; /* a bit a row */
    bool packed;
};

bool has_table_rows(const Tensor *parameter)
{
    return backend_looks_for_zeros() && parameter->is_table && tensor_count(parameter) >= WORTH_IT;
}

static int64_t bytes_for(int64_t rows)
{
    return (rows + 7) / 8;
}

TableRows *table_rows_new(Tensor *parameter)
{
    TableRows *t = calloc(1, sizeof *t);
    t->gradient = parameter->gradient;
    t->rows = parameter->shape.size[0];
    t->columns = parameter->shape.size[1];
    t->index = malloc((size_t)t->rows * sizeof *t->index);
    t->used = malloc((size_t)bytes_for(t->rows));
    return t;
}

void table_rows_free(TableRows *t)
{
    if (!t)
        return;
    free(t->index);
    free(t->used);
    free(t);
}

static bool is_used(const TableRows *t, int64_t row)
{
    return t->used[row / 8] >> row % 8 & 1;
}

static void find_used(TableRows *t)
{
    int64_t mine = kernel_rows_in_use(t->rows, t->columns, reals(t->gradient), t->index);
    memset(t->used, mine == t->rows ? 0xff : 0, (size_t)bytes_for(t->rows));
    for (int64_t i = 0; i < mine && mine < t->rows; i++)
        t->used[t->index[i] / 8] |= (uint8_t)(1 << t->index[i] % 8);
}

static real *row_at(const TableRows *t, int64_t row)
{
    return reals(t->gradient) + row * t->columns;
}

static size_t row_bytes(const TableRows *t)
{
    return (size_t)t->columns * sizeof(real);
}

int64_t table_rows_pack(TableRows *t, Group *group)
{
    find_used(t);
    comm_any(group, t->used, bytes_for(t->rows));
    t->count = 0;
    for (int64_t row = 0; row < t->rows; row++)
        if (is_used(t, row))
            t->index[t->count++] = (int32_t)row;
    t->packed = 2 * t->count < t->rows;
    for (int64_t i = 0; t->packed && i < t->count;
         i++) /* a row moves to the front, over one that has moved */
        if (t->index[i] != i)
            memcpy(row_at(t, i), row_at(t, t->index[i]), row_bytes(t));
    return (t->packed ? t->count : t->rows) * t->columns;
}

void table_rows_unpack(TableRows *t)
{
    for (int64_t i = t->packed ? t->count - 1 : -1; i >= 0; i--)
        if (t->index[i] != i)
            memcpy(row_at(t, t->index[i]), row_at(t, i), row_bytes(t));
    for (int64_t row = 0; t->packed && row < t->count; row++)
        if (!is_used(t, row))
            memset(row_at(t, row), 0, row_bytes(t));
    t->packed = false;
}
