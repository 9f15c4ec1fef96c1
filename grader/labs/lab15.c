/* Lab 15, Ring all-reduce: its two halves, each on its own, over groups of the world. */
#include "grader/labs/ring.h"

#include <math.h>

#include "base/run.h"

#ifdef BALISE_DOUBLE
#include "backend/reference/arithmetic.h"
#endif

int64_t ring_count(const Case *c, int call)
{
    return call == 1 ? c->N / 2 + 1 : c->N;
}

static Tensor *input(Scenario *run, const char *what, int call, int rank)
{
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "%s, call %d", what, call + 1);
    return random_input(run, key, rank, SHAPE(ring_count(&run->c, call)), false);
}

Tensor *ring_input(Scenario *run, int part, int call, int rank)
{
    const int first = tp_group(&run->c, rank).first;
    const bool gathers = part == RING_ALL_GATHER;
    Tensor *x = gathers ? input(run, "sum", call, -1 - first) : input(run, "x", call, rank);
    const int64_t count = tensor_count(x), n = run->c.tp,
                  mine = gathers ? 0 : place_in(tp_group(&run->c, rank), rank);
    for (int64_t k = 0; run->c.exponent != 0 && call == 1 && k < n; k++) {
        reals(x)[count * k / n + mine] = (real)NAN; /* one in each chunk, of each rank */
        if (count / n > 2 * n)
            reals(x)[count * k / n + n + mine] = (real)INFINITY;
    }
    return x;
}

Tensor *ring_rest(Scenario *run, int call, int rank)
{
    return input(run, "rest", call, rank);
}

#ifndef BALISE_DOUBLE
/* This rank's chunk, as the lab computes it. */
static Range chunk_of_rank(const Scenario *run, Group *group, int call)
{
    const int64_t count = ring_count(&run->c, call);
    const Range chunk = ring_chunk(count, group_rank(group), group_size(group));
    if (chunk.begin < 0 || chunk.begin > chunk.end || chunk.end > count)
        misuse("begin is the first number of the chunk, and end is one past its last number",
               "ring_chunk(%lld, %d, %d) returned begin %lld and end %lld, but 0 <= begin <= end "
               "<= %lld must hold",
               (long long)count, group_rank(group), group_size(group), (long long)chunk.begin,
               (long long)chunk.end, (long long)count);
    return chunk;
}

/* For a gather, each rank gets only its own chunk; the rest is different on each rank. */
static Tensor *given(Scenario *run, Range mine, int part, int call)
{
    const int rank = group_rank(run->mesh->world);
    Tensor *x = ring_input(run, part, call, rank);
    if (part == RING_REDUCE_SCATTER)
        return x;
    Tensor *rest = ring_rest(run, call, rank);
    memcpy(reals(rest) + mine.begin, reals(x) + mine.begin,
           (size_t)(mine.end - mine.begin) * sizeof(real));
    memset(reals(x), 0, (size_t)tensor_count(x) * sizeof(real)); /* the lab could find it */
    return rest;
}

/* Writes this rank's chunk as a part of the sum, and all of x, which shows what went wrong. */
static void write_sum(Scenario *run, Range mine, int call, Tensor *x)
{
    const int64_t count = mine.end - mine.begin;
    double *numbers;
    Entry *entry = stream_entry(&run->stream, VALUES, RING_SUM,
                                ring_label(OUTPUT_OF, RING_REDUCE_SCATTER, call), count, &numbers);
    entry->shape = SHAPE(tensor_count(x));
    entry->placement_kind = SHARD;
    entry->begin = mine.begin;
    entry->end = mine.end;
    backend_wait();
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (double)reals(x)[mine.begin + i];
    write_values(run, RING_SUM, ring_label(VALUE_OF, RING_REDUCE_SCATTER, call), x);
}

static void run_part(Scenario *run, Group *group, int part, int call)
{
    const Sizes sizes = {.N = ring_count(&run->c, call)};
    const Range mine = chunk_of_rank(run, group, call);
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key});
    Tensor *x = given(run, mine, part, call);
    if (call == 1 && sizes.N % 2 == 0) /* x may have any shape */
        x->shape = SHAPE(sizes.N / 2, 2);
    at(run, ring_label(ITSELF, part, call));
    traffic_begin(run);
    (part == RING_REDUCE_SCATTER ? ring_reduce_scatter : ring_all_gather)(group, x);
    traffic_end(run, ring_label(FORWARD_OF, part, call), FORWARD_BUDGET, &sizes);
    x->shape = SHAPE(sizes.N);
    if (part == RING_REDUCE_SCATTER)
        write_sum(run, mine, call, x);
    else
        write_values(run, RING_GATHER, ring_label(OUTPUT_OF, part, call), x);
    tape_must_be_summed(run->tape);
}

static void write_extreme_chunks(Scenario *run)
{
    for (int i = 0; i < RING_EXTREMES; i++) {
        double *numbers;
        stream_entry(&run->stream, VALUES, RING_SUM, ring_extreme_label(i), 2 * RING_MANY, &numbers)
            ->shape = SHAPE(2 * RING_MANY);
        for (int k = 0; k < RING_MANY; k++) {
            const Range chunk = ring_chunk(ring_extremes[i], k, RING_MANY);
            numbers[2 * k] = (double)chunk.begin;
            numbers[2 * k + 1] = (double)chunk.end;
        }
    }
}

void scenario_15(Scenario *run)
{
    const int rank = group_rank(run->mesh->world);
    write_extreme_chunks(run);
    Group *group = group_split(run->mesh->world, tp_group(&run->c, rank).first, rank);
    for (int part = 0; part < RING_PARTS; part++)
        for (int call = 0; call < RING_CALLS_OF_PART; call++)
            run_part(run, group, part, call);
}
#else
/* The sum over a group; in emulated single precision, each run adds in a different order. */
static Tensor *sum_over(Scenario *run, int call, Members of)
{
    const Order order = reference_order(of.count);
    Tensor *sum = NULL;
    for (int64_t n = 0, k = order.first; n < of.count; n++, k = order_next(order, k)) {
        Tensor *x = ring_input(run, RING_REDUCE_SCATTER, call, of.first + (int)k * of.stride);
        sum = sum ? add(sum, x) : x;
    }
    return sum;
}

static void expect_15(const Case *c, int rank, Stream stream)
{
    Scenario run = scenario_alone(c, stream);
    for (int part = 0; part < RING_PARTS; part++)
        for (int call = 0; call < RING_CALLS_OF_PART; call++) {
            const Sizes sizes = {.N = ring_count(c, call)};
            tape_reset(run.tape, (TapeBatch){.seed = c->key});
            Tensor *y = part == RING_REDUCE_SCATTER ? sum_over(&run, call, tp_group(c, rank))
                                                    : ring_input(&run, part, call, rank);
            traffic_end(&run, ring_label(FORWARD_OF, part, call), FORWARD_BUDGET, &sizes);
            write_values(&run, ring_check(part), ring_label(OUTPUT_OF, part, call), y);
        }
    scenario_close(&run);
}

static Summand summand_15(Scenario *run, const Entry *want, int of, int on)
{
    if (want->check != RING_SUM || want->label.what != OUTPUT_OF)
        return (Summand){0};
    return (Summand){ring_input(run, RING_REDUCE_SCATTER, want->label.step, of),
                     tp_group(&run->c, of).first == tp_group(&run->c, on).first, 1};
}

static Allowance sent_15(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_gather(n, z->N), 0};
}

static Case case_15(const Lab *lab, Draw *d, int world, int tp, int64_t N)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.N = (int32_t)N;
    c.apart = world > tp && tp == 2;
    return c;
}

/* Not divisible: chunks differ by one number. */
static Case usual_15(const Lab *lab, Draw *d, int world, int tp)
{
    return case_15(lab, d, world, tp, 10 * tp + 1 + (tp > 2));
}

static int cases_15(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    enum { LARGE = 100000 };
    int count = 0;
    cases[count++] = usual_15(lab, d, world, tp);
    cases[count] = case_15(lab, d, world, tp, tp * draw(d, 3, 9));
    cases[count].integers = 1;
    cases[count++].delay = 1;
    cases[count] =
        case_15(lab, d, world, tp, tp * draw(d, 20, 60) + draw(d, 1, tp > 1 ? tp - 1 : 1));
    cases[count++].exponent = 12;
    if (tp > 1) /* fewer numbers than ranks */
        cases[count++] = case_15(lab, d, world, tp, draw(d, 1, tp - 1));
    if (world == 4 && tp == 4)
        cases[count++] = case_15(lab, d, world, tp, 1);
    if (world == 5) /* one number each */
        cases[count++] = case_15(lab, d, world, tp, tp);
    if (world == tp && (tp == 2 || tp == 4)) /* with two ranks, the chunks are largest */
        cases[count++] = case_15(lab, d, world, tp, LARGE - draw(d, 1, 3));
    return count;
}

static const char *misfit_15(const Case *c)
{
    return c->N < 1 ? _("N must be at least 1") : NULL;
}

static double bytes_of_ring(int rank, const Entry *entry, const double *numbers)
{
    const bool counts =
        entry->kind == TRAFFIC && entry->label.of == A_RING && entry->label.step == 0;
    return rank == 0 && counts ? 4 * numbers[0] : 0;
}

Lab lab_15 = {
    LAB_FILES_15,
    .title = N_("Ring all-reduce"),
    .points = {[RING_SUM] = 3, [RING_GATHER] = 2, [COMMUNICATION] = 2, [SCHEDULE] = 3},
    .layouts = "4x4 2x2 3x3 5x5 8x8 4x2 6x3 1x1",
    .has_replicas = true,
    .sizes = SIZE_N,
    .predict = {.question = N_("Five ranks sum a tensor of 1,000 fp32 numbers around a ring, by a "
                               "reduce-scatter and an all-gather. How many bytes does one rank "
                               "send?"),
                .unit = N_("bytes"),
                .at = {.world = 5, .tp = 5, .N = 1000},
                .count = bytes_of_ring},
    .examine = {.the_case = compare_ring,
                .reasons = ring_reasons,
                .summand = summand_15,
                .ending = ring_ending},
    .kinds = {{.expect = expect_15}},
    .forward = sent_15,
    .usual = usual_15,
    .cases = cases_15,
    .misfit = misfit_15,
};
#endif
