/* Collects gradients in buckets, and hands each complete bucket to the labs. */
#include "train/buckets.h"

#include <stdlib.h>
#include <string.h>

#include "base/run.h"
#include "train/profile.h"

/* ---- used rows of a table ----------------------------------------------------------------------------- */

/* The kit looks for the used rows of a table only if it has at least this many elements. In a
 * smaller table, looking takes as long as sending all rows. */
enum { WORTH_IT = 1 << 20 };

struct TableRows {
    Tensor *gradient;
    int64_t rows, columns;
    int32_t *index; /* [rows] indices of the rows in use, in order */
    int64_t count;
    uint8_t *used; /* one bit per row */
    bool packed;
};

bool has_table_rows(const Tensor *x)
{
    const Parameter *p = x->parameter;
    return backend_looks_for_zeros() && p->is_table && !p->is_multiplied &&
           tensor_count(x) >= WORTH_IT;
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
    int64_t mine = kernel_rows_in_use(t->rows, t->columns, reals_or_halves(t->gradient), t->index);
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
    /* Each row moves to the front. The row that it overwrites has already moved. */
    for (int64_t i = 0; t->packed && i < t->count; i++)
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

/* ---- buckets ------------------------------------------------------------------------------------------- */

/* Data about a bucket that lab 11 does not see. */
typedef struct Filling {
    Tensor gradients; /* a range of the arena, or its front, which holds the used rows of a table */
    int64_t range;    /* numbers in the whole range */
    unsigned partial; /* see Tensor.partial */
    int parameters, missing;
    TableRows *table; /* if the bucket is a large table: its rows in use */
} Filling;

struct BucketSet {
    Model *model;
    int count;
    Bucket *bucket;   /* in order of completion: the last parameters first */
    Filling *filling; /* in the order of the parameters; for bucket i, filling[count - 1 - i] */
    int pass, passes; /* the current backward pass, from 0; the number of passes in a step */
};

static int filling_of(const BucketSet *set, const Tensor *parameter)
{
    int i = set->count - 1;
    while (reals(parameter->gradient) < reals(&set->filling[i].gradients))
        i--;
    return i;
}

static Bucket *bucket_at(const BucketSet *set, int filling)
{
    return &set->bucket[set->count - 1 - filling];
}

static void open_bucket(BucketSet *set, real *first)
{
    size_t count = (size_t)++set->count;
    set->filling = realloc(set->filling, count * sizeof *set->filling);
    set->filling[count - 1] = (Filling){.gradients = {.data = first, .shape = SHAPE(0)}};
}

BucketSet *bucket_set_new(Model *model, int64_t bytes)
{
    BucketSet *set = calloc(1, sizeof *set);
    set->model = model;
    real *end = model_gradients(model) + model->arena_size;
    for (Parameter *p = model->parameters; p; p = p->next) {
        real *first = reals(p->value->gradient);
        if (!set->count ||
            (first - reals(&set->filling[set->count - 1].gradients)) * (int64_t)sizeof(real) >=
                bytes)
            open_bucket(set, first);
        set->filling[set->count - 1].parameters++;
    }
    set->bucket = calloc((size_t)set->count, sizeof *set->bucket);
    for (int i = 0; i < set->count; i++) {
        Tensor *range = &set->filling[i].gradients;
        real *next = i + 1 < set->count ? reals(&set->filling[i + 1].gradients) : end;
        range->shape.size[0] = set->filling[i].range = next - reals(range);
        range->buffer = model->gradients;
        bucket_at(set, i)->gradients = range;
    }
    return set;
}

void bucket_set_free(BucketSet *set)
{
    for (int i = 0; i < set->count; i++)
        table_rows_free(set->filling[i].table);
    free(set->bucket);
    free(set->filling);
    free(set);
}

static bool is_last_pass(const BucketSet *set)
{
    return set->pass == set->passes - 1;
}

static void give_out(BucketSet *set, int i, Tensor *last)
{
    const Mesh *mesh = set->model->mesh;
    Filling *filling = &set->filling[i];
    if (last && is_last_pass(set) && mesh->dp_degree > 1 && filling->parameters == 1 &&
        has_table_rows(last)) {
        if (!filling->table)
            filling->table = table_rows_new(last);
        filling->gradients.shape.size[0] = table_rows_pack(filling->table, mesh->dp);
        span_end(REDUCTION_ROWS, true);
    }
    bucket_filled(bucket_at(set, i), set->pass, set->passes, mesh);
    if (!is_last_pass(set) && bucket_at(set, i)->pending)
        misuse(N_("start the sum in the last backward pass of a step, when the gradients of all "
                  "micro-batches are in the bucket"),
               "bucket_filled started the sum over the replicas in backward pass %d of %d, and the "
               "passes after it add to the same gradients",
               set->pass + 1, set->passes);
}

void bucket_hold(Bucket *bucket, Tensor *gradients)
{
    if (bucket->gradients != gradients)
        misplaced("leave the result in the tensor that the optimiser reads: which function of lab "
                  "11 works in place?",
                  "after buckets_finish, bucket->gradients is a different tensor: the optimiser "
                  "reads the original one");
    bucket->gradients = gradients;
}

static void parameter_complete(void *context, Tensor *parameter)
{
    BucketSet *set = context;
    int i = filling_of(set, parameter);
    if (--set->filling[i].missing == 0)
        give_out(set, i, parameter);
}

void bucket_set_begin(BucketSet *set, Tape *tape, int pass, int passes)
{
    set->pass = pass;
    set->passes = passes;
    for (int i = 0; i < set->count; i++) {
        set->filling[i].missing = set->filling[i].parameters;
        set->filling[i].gradients.tape = tape;
        set->filling[i].gradients.partial = &set->filling[i].partial;
        set->filling[i].partial = set->model->mesh->dp_degree > 1 ? OVER_DP : 0;
        set->bucket[i].pending = NULL;
    }
    tape->watch = (GradientWatch){parameter_complete, set};
}

double bucket_set_finish(BucketSet *set, Tape *tape)
{
    double begin = MPI_Wtime();
    tape->watch = (GradientWatch){0};
    model_complete_gradients(set->model);
    for (int i = set->count - 1; i >= 0; i--)
        if (set->filling[i].missing > 0)
            give_out(set, i, NULL);
    buckets_finish(set->bucket, set->count, set->model->mesh);
    for (int i = 0; i < set->count; i++) {
        bucket_hold(bucket_at(set, i), &set->filling[i].gradients);
        Filling *filling = &set->filling[i];
        const int64_t first = reals(&filling->gradients) - model_gradients(set->model);
        if (!filling->partial)
            model_gradients_added(set->model, (Range){first, first + filling->range}, OVER_DP);
        if (filling->table)
            table_rows_unpack(filling->table);
        filling->gradients.shape.size[0] = filling->range;
    }
    return MPI_Wtime() - begin;
}
