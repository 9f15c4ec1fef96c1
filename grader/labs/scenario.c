/* What every scenario writes and draws. */
#include "grader/labs/scenario.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"

Entry *stream_entry(Stream *stream, EntryKind kind, int check, Label label, int64_t count,
                    double **numbers)
{
    int64_t used = atomic_load(stream->used);
    int64_t bytes = (int64_t)sizeof(Entry) + count * (int64_t)sizeof(double);
    if (used + bytes > stream->room)
        misuse("a lab has a few parameters, and makes a few calls in each pass",
               "the record of this case is full");
    Entry *entry = (Entry *)(stream->base + used);
    memset(entry, 0, sizeof *entry);
    *entry = (Entry){.kind = kind, .check = check, .label = label, .count = count};
    if (numbers)
        *numbers = (double *)(entry + 1);
    atomic_store(stream->used, used + bytes);
    return entry;
}

#ifdef BALISE_DOUBLE
Scenario scenario_alone(const Case *c, Stream stream)
{
    static const Mesh one = {.tp_degree = 1, .dp_degree = 1, .pp_degree = 1};
    Scenario run = {.c = *c, .mesh = &one, .stream = stream, .pool = pool_new(0, false)};
    run.tape = tape_new(run.pool, &one);
    tape_reset(run.tape, (TapeBatch){.seed = c->key});
    return run;
}

void scenario_close(Scenario *run)
{
    tape_free(run->tape);
    pool_free(run->pool);
}
#endif

/* A lab may alternate between two buffers, so a call repeats others from the third equal one on,
 * where there are as many. The last round of buckets has the sizes of the second. */
bool is_repeated(const Case *c, const Label *at)
{
    switch (at->of) {
    case A_LAYER:
        return at->step >= STEPS || (at->step == 1 && c->more_B == 0);
    case AN_OPERATION: /* backward passes may be in reverse order */
        return at->step == (c->reverse && at->what == BACKWARD_PASS_OF ? 0 : 2);
    case A_DEAL:
        return (at->step >= 10 && at->step <= 41) ||            /* of other tails, too */
               (at->step == 1 && at->detail == EVERY_ROW_ONCE); /* the sixth of as many rows */
    case METRICS_OF:
        return at->step >= 2;
    case A_BUCKET:
    case A_ROUND:
        return at->step == 3;
    case THE_WEIGHTS:
        return at->index == 1;
    case OF_SHARDS:
        return at->detail == 1 || at->step >= 1;
    default:
        return at->step == 1;
    }
}

static void write_tensor(Scenario *run, EntryKind kind, Check check, Label label, Tensor *x)
{
    double *numbers;
    int64_t count = tensor_count(x);
    Entry *entry = stream_entry(&run->stream, kind, check, label, count, &numbers);
    entry->shape = x->shape;
    entry->called = x->placement.kind;
    x->summing = NULL; /* the recorder reports what was not waited for, with its line */
    const int64_t calls = calls_so_far();
    ready(x);
    if (calls_so_far() != calls)
        misuse("exchange everything before your function returns",
               "a tensor that the lab returned exchanges numbers when it is read");
    backend_wait();
    for (int64_t i = 0; i < count; i++)
        numbers[i] = x->dtype == REAL ? (double)reals(x)[i] : ints(x)[i];
}

void write_values(Scenario *run, Check check, Label label, Tensor *x)
{
    if (x)
        write_tensor(run, VALUES, check, label, x);
    else
        stream_entry(&run->stream, VALUES, check, label, 0, NULL);
}

void write_shard(Scenario *run, Check check, Label label, Tensor *x, int dim, Range held,
                 int64_t size)
{
    Entry *entry = (Entry *)(run->stream.base + atomic_load(run->stream.used));
    write_values(run, check, label, x);
    if (!x || x->shape.size[dim] == size)
        return;
    entry->shape.size[dim] = size;
    entry->placement_kind = SHARD;
    entry->placement_dim = dim;
    entry->begin = held.begin;
    entry->end = held.end;
}

static void write_held(Scenario *run, EntryKind kind, Check check, Label label, const Parameter *p,
                       Tensor *x)
{
    Entry *entry = (Entry *)(run->stream.base + atomic_load(run->stream.used));
    write_tensor(run, kind, check, label, x);
    entry->shape = p->shape;
    entry->placement_kind = p->placement.kind;
    entry->placement_dim = p->placement.dim;
    entry->begin = p->held.begin;
    entry->end = p->held.end;
}

void write_parameters(Scenario *run)
{
    for (Parameter *p = run->model->parameters; p; p = p->next)
        write_held(run, PARAMETER, SHARDING, label_named(p->name), p, p->value);
}

void write_arena(Scenario *run, Check check, What what, int step)
{
    write_arena_as(run, check, what, step, 0);
}

static void write_parameter_in(Scenario *run, Check check, const Parameter *p, What what, int step,
                               int detail)
{
    Label label = label_named(p->name);
    label.what = what;
    label.of = A_PARAMETER;
    label.step = step;
    label.detail = detail;
    write_held(run, VALUES, check, label, p, what == VALUE_OF ? p->value : p->value->gradient);
}

void write_arena_as(Scenario *run, Check check, What what, int step, int detail)
{
    for (const Parameter *p = run->model->parameters; p; p = p->next)
        write_parameter_in(run, check, p, what, step, detail);
}

void write_split_gradients(Scenario *run, Check check, int step)
{
    for (const Parameter *p = run->model->parameters; p; p = p->next)
        if (p->placement.kind == SHARD)
            write_parameter_in(run, check, p, GRADIENT_OF, step, 0);
}

bool is_split_by_rows(const Scenario *run, const char *name)
{
    const Parameter *p = model_parameter(run->model, name);
    return p && p->placement.kind == SHARD && p->placement.dim == 0;
}

void begin_pass(Scenario *run, int step)
{
    const bool trains = step < STEPS;
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key,
                                      .step = step,
                                      .count = run->c.B,
                                      .samples = run->samples,
                                      .training = trains && run->c.training});
    tape_record(run->tape, trains);
    model_clear_gradients(run->model);
}

/* ---- inputs --------------------------------------------------------------------------------------------------------- */

typedef struct Drawn {
    PhiloxKey key;
    int64_t count;
    struct Drawn *next;
    double number[];
} Drawn;

static Drawn *kept;
static uint64_t kept_of;

static void forget_those_of_other_cases(uint64_t of_case)
{
    while (kept && kept_of != of_case) {
        Drawn *next = kept->next;
        memset(kept->number, 0, (size_t)kept->count * sizeof *kept->number);
        free(kept);
        kept = next;
    }
    kept_of = of_case;
}

const double *drawn(uint64_t of_case, PhiloxKey key, int64_t count)
{
    forget_those_of_other_cases(of_case);
    for (const Drawn *d = kept; d; d = d->next)
        if (d->count == count && !memcmp(&d->key, &key, sizeof key))
            return d->number;
    const int64_t blocks = (count + 3) / 4;
    Drawn *d = malloc(sizeof *d + (size_t)(4 * blocks) * sizeof *d->number);
    if (!d)
        misuse("close other programs", "not enough memory for %lld numbers", (long long)count);
    *d = (Drawn){key, count, kept};
    for (int64_t block = 0; block < blocks; block++) {
        const Philox4 four = philox(key, (uint32_t)block, (uint32_t)(block >> 32), 0, 0);
        for (int i = 0; i < 4; i++)
            d->number[4 * block + i] = philox_uniform(four.word[i]);
    }
    kept = d;
    return d->number;
}

static PhiloxKey key_of(const Scenario *run, const char *name)
{
    return philox_key(run->c.key, name, (uint64_t)run->c.lab);
}

static bool is_diverged(const Scenario *run)
{
    return run->tape->batch.step == DIVERGED;
}

Tensor *random_input(Scenario *run, const char *name, int rank, Shape shape, bool needs_gradient)
{
    char full[KEY_SIZE + 16];
    snprintf(full, sizeof full, "%s of rank %d", name, rank);
    PhiloxKey key = key_of(run, full);
    Tensor *x =
        tape_host_tensor(run->tape, REAL, shape, (Placement){rank < 0 ? WHOLE : UNKNOWN, 0});
    const int64_t count = shape_count(shape);
    const double *uniform = drawn(run->c.key, key, count);
    /* In a case of integers, the last rank contributes zeros. */
    const bool nothing = run->c.integers && rank > 0 && rank == run->c.world - 1;
    const double unit = ldexp(1, run->c.exponent);
    for (int64_t i = 0; i < count; i++) {
        double value =
            run->c.integers ? (double)((int)(uniform[i] * 15) - 7) : (2 * uniform[i] - 1) * unit;
        reals(x)[i] = (real)(float)(nothing ? 0 : value);
    }
    if (run->c.diverged && rank >= 0 && count > 2 * MAX_RANKS) { /* each rank at its own place */
        reals(x)[count / 2 + rank] = (real)NAN;
        reals(x)[count / 3 + rank] = (real)INFINITY;
    }
    if (needs_gradient &&
        is_diverged(run)) /* a lab that hides NaN hides that training has diverged */
        reals(x)[0] = (real)NAN;
    x->needs_gradient = needs_gradient;
#ifndef BALISE_DOUBLE
    forget_those_of_other_cases(~run->c.key); /* a rank that gets a part must not find the rest */
#endif
    return x;
}

int64_t random_below(const Scenario *run, const char *name, int64_t index, int64_t below)
{
    return (int64_t)(philox_uniform_at(key_of(run, name), (uint64_t)index) * (double)below);
}

Tensor *random_ids(Scenario *run, const char *name, int64_t limit)
{
    const Case *c = &run->c;
    Tensor *ids = tape_host_tensor(run->tape, INT32, SHAPE(c->B, c->S), whole());
    int64_t count = tensor_count(ids);
    for (int64_t i = 0; i < count; i++)
        ints(ids)[i] = (int32_t)random_below(run, name, i, limit);
    ints(ids)[0] = (int32_t)(limit - 1);
    ints(ids)[count - 1] = 0;
    if (count > 3)
        ints(ids)[count / 2] = ints(ids)[0];
    return ids;
}

/* The first sample may be padded at its end, like a text; in the others, any position may be
 * hidden, even the first. At least two positions are visible, because attention over a single one
 * has weight 1, whatever its score. */
Tensor *random_mask(Scenario *run, const char *name)
{
    const Case *c = &run->c;
    Tensor *mask = tape_host_tensor(run->tape, INT32, SHAPE(c->B, c->S), whole());
    int64_t draws = 0;
    for (int64_t b = 0; b < c->B; b++) {
        int32_t *row = ints(mask) + b * c->S;
        const int64_t least = c->S < 2 ? c->S : 2, most = c->B == 1 && c->S > 2 ? c->S - 1 : c->S;
        int64_t tokens = least + random_below(run, name, draws++, most - least + 1);
        for (int64_t s = 0; s < c->S; s++)
            row[s] = b == 0 ? s < tokens : (int32_t)random_below(run, name, draws++, 2);
        if (b > 0) {
            int64_t hidden = random_below(run, name, draws++, c->S);
            row[hidden] = 0;
            for (int64_t k = 1; k <= least; k++)
                row[(hidden + k) % c->S] = 1;
        }
    }
    for (int64_t i = 0; is_diverged(run) && i < c->B * c->S; i++)
        ints(mask)[i] =
            1; /* what a kernel computes from NaN at hidden positions is its own affair */
    return mask;
}

void must_be_whole(const Scenario *run, const char *who, const Tensor *y)
{
    char text[96];
    if (run->mesh->tp_degree > 1 && y->placement.kind != WHOLE && y->placement.kind != UNKNOWN)
        misplaced(y->placement.kind == PARTIAL ? N_("all_reduce (g) adds the partial sums")
                  : y->placement.kind == COPIED
                      ? N_("duplication (f) is for the input of a product "
                           "with a split weight, not for what a layer returns")
                      : N_("all_gather joins the shards of all ranks"),
                  "%s returns %s; it should be whole on every rank", who, tensor_text(y, text));
}
