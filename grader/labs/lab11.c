/* Lab 11, Data parallelism: the rows that each replica reads, the mean of the gradients, the sums
 * of the metrics, and two steps of the whole model at any layout. */
#include "grader/labs/groups.h"
#include "grader/labs/replicas.h"

#include <stdio.h>

static void write_metrics(Scenario *run, const Metrics *metrics, int evaluation)
{
    double *values;
    traffic_end(run, label_of(CALL_OF, METRICS_OF, 0, evaluation), FORWARD_BUDGET, &(Sizes){0});
    stream_entry(&run->stream, VALUES, METRICS, label_of(OUTPUT_OF, METRICS_OF, 0, evaluation), 3,
                 &values)
        ->shape = SHAPE(3);
    values[0] = metrics->loss_sum;
    values[1] = metrics->correct;
    values[2] = metrics->count;
}

#ifndef BALISE_DOUBLE
#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"
#include "grader/labs/room.h"
#include "train/buckets.h"

enum { TOLD = 64 }; /* how many numbers beyond `rows` an entry keeps of `mine` */

/* ---- the sampler ---- */

static double *dealt(Scenario *run, What what, const Deal *deal, int64_t count)
{
    double *values;
    stream_entry(&run->stream, DEALT, ROWS, replica_deal_label(what, deal), count, &values)->shape =
        SHAPE(count);
    return values;
}

/* Records what was written to `room`, up to `most` numbers. Returns the entry's numbers, which begin
 * with `first` numbers that the caller fills. */
static double *write_room(Scenario *run, What what, const Deal *deal, const Room *room,
                          int64_t most, int first)
{
    int64_t written = room_last_written(room) + 1;
    if (written > most)
        written = most;
    double *values = dealt(run, what, deal, first + written);
    for (int64_t i = 0; i < written; i++)
        values[first + i] = (double)room->numbers[i];
    return values;
}

/* Records a write outside the room: the room's capacity, and the first and last index written. */
static void write_outside(Scenario *run, const Deal *deal, const Room *room, What what)
{
    int64_t first = room_written_before(room), last = room_last_written(room);
    if (first == 0 && last < room->count)
        return;
    double *values = dealt(run, what, deal, 3);
    values[0] = (double)room->count;
    values[1] = (double)first;
    values[2] = (double)last;
}

static void write_deal(Scenario *run, const Deal *deal)
{
    Room order, mine;
    int64_t dp = replicas_of(&run->c);
    room_take(&order, "order", deal->rows, ORDER_MARK);
    room_take(&mine, "mine", (deal->rows + dp - 1) / dp, MINE_MARK);
    Sampler sampler = {.rows = deal->rows,
                       .seed = run->c.key + ((uint64_t)deal->seed << 32),
                       .tail = deal->tail,
                       .order = order.numbers,
                       .mine = mine.numbers};
    Sampler before = sampler;
    at(run, replica_deal_label(CALL_OF, deal));
    traffic_begin(run);
    int64_t length = sampler_set_epoch(&sampler, deal->epoch, run->mesh);
    traffic_end(run, replica_deal_label(CALL_OF, deal), FORWARD_BUDGET, &(Sizes){0});
    if (sampler.rows != before.rows || sampler.seed != before.seed || sampler.tail != before.tail ||
        sampler.order != before.order || sampler.mine != before.mine)
        misuse("the loop calls it again in the next epoch: fill `order` and `mine`, and leave the "
               "other fields alone",
               "sampler_set_epoch: a field of the sampler was changed");
    write_outside(run, deal, &mine, OUTSIDE_MINE);
    write_outside(run, deal, &order, OUTSIDE_ORDER);
    /* Writes the returned length, the capacity of `mine`, and everything that was written there. */
    double *values = write_room(run, ITSELF, deal, &mine, deal->rows + TOLD, 2);
    values[0] = (double)length;
    values[1] = (double)mine.count;
    write_room(run, ORDER_OF, deal, &order, deal->rows, 0);
    room_free(&order);
    room_free(&mine);
}

/* ---- the gradients ---- */

static void run_buckets(Scenario *run, int round)
{
    char key[KEY_SIZE];
    int count = replica_buckets(round);
    Bucket buckets[MOST_BUCKETS] = {{0}};
    Tensor *gradients[MOST_BUCKETS];
    unsigned partial[MOST_BUCKETS];
    Sizes sizes = {.part = count};
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key});
    for (int i = 0; i < count; i++) {
        replica_bucket_key(key, i, round);
        int64_t size = replica_bucket_size(&run->c, i);
        sizes.N += size;
        gradients[i] = random_input(run, key, group_rank(run->mesh->world), SHAPE(size), false);
        terms_begin(gradients[i], &partial[i], OVER_DP);
        buckets[i].gradients = gradients[i];
    }
    traffic_begin(run);
    for (int i = 0; i < count; i++) {
        at(run, label_of(START_OF, A_BUCKET, i, round));
        bucket_ready(&buckets[i], run->mesh);
    }
    at(run, label_of(END_OF, A_ROUND, 0, round));
    buckets_finish(buckets, count, run->mesh);
    traffic_end(run, label_of(GRADIENT_OF, A_ROUND, 0, round), BACKWARD_BUDGET, &sizes);
    for (int i = 0; i < count; i++) {
        bucket_hold(&buckets[i], gradients[i]);
        terms_end(gradients[i], buckets_finish, "buckets_finish", _("its argument"));
        write_values(run, GRADIENT, label_of(GRADIENT_OF, A_BUCKET, i, round), gradients[i]);
    }
}

/* ---- the metrics ---- */

static void run_metrics(Scenario *run, int evaluation)
{
    Metrics metrics =
        replica_metrics(run, group_rank(run->mesh->world) / run->mesh->tp_degree, evaluation);
    at(run, label_of(CALL_OF, METRICS_OF, 0, evaluation));
    traffic_begin(run);
    metrics_synchronise(&metrics, run->mesh);
    write_metrics(run, &metrics, evaluation);
}

void scenario_11(Scenario *run)
{
    Deal deal;
    if (run->c.kind == WHOLE_MODEL)
        run_whole_model(run);
    for (int i = 0; run->c.kind == COUNTING && i < EVALUATIONS; i++)
        run_metrics(run, i);
    for (int i = 0; run->c.kind == DEALING && replica_deal(&run->c, i, &deal); i++)
        write_deal(run, &deal);
    for (int round = 0; run->c.kind == AVERAGING && round < ROUNDS; round++)
        run_buckets(run, round);
}
#else
#include "backend/reference/arithmetic.h"

static void expect_buckets(Scenario *run, int rank, int round)
{
    char key[KEY_SIZE];
    int count = replica_buckets(round);
    Sizes sizes = {.part = count};
    const Members dp = group_members(&run->c, DP, rank); /* those with the same shards */
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key});
    for (int i = 0; i < count; i++)
        sizes.N += replica_bucket_size(&run->c, i);
    traffic_end(run, label_of(GRADIENT_OF, A_ROUND, 0, round), BACKWARD_BUDGET, &sizes);
    for (int i = 0; i < count; i++) {
        replica_bucket_key(key, i, round);
        Shape shape = SHAPE(replica_bucket_size(&run->c, i));
        const Order order = reference_order(dp.count); /* replicas may add in any order */
        int64_t k = order.first;
        Tensor *sum = random_input(run, key, dp.first + (int)k * dp.stride, shape, false);
        for (int64_t n = 1; n < dp.count; n++) {
            k = order_next(order, k);
            sum = add(sum, random_input(run, key, dp.first + (int)k * dp.stride, shape, false));
        }
        kernel_vector_scale(tensor_count(sum), 1.0 / dp.count, reals(sum));
        write_values(run, GRADIENT, label_of(GRADIENT_OF, A_BUCKET, i, round), sum);
    }
}

static void expect_metrics(Scenario *run, int evaluation)
{
    Metrics sum = {0};
    for (int replica = 0; replica < replicas_of(&run->c); replica++) {
        const Metrics m = replica_metrics(run, replica, evaluation);
        sum.loss_sum += m.loss_sum;
        sum.correct += m.correct;
        sum.count += m.count;
    }
    write_metrics(run, &sum, evaluation);
}

void expect_replicas(const Case *c, int rank, Stream stream)
{
    Deal deal;
    Scenario run = scenario_alone(c, stream);
    double *none;
    for (int i = 0; c->kind == DEALING && replica_deal(c, i, &deal); i++) {
        stream_entry(&run.stream, TRAFFIC, COMMUNICATION, replica_deal_label(CALL_OF, &deal), 3,
                     &none);
        none[0] = none[1] = none[2] = 0; /* the sampler needs no communication */
        stream_entry(&run.stream, DEALT, ROWS, replica_deal_label(ITSELF, &deal), 0, &none);
    }
    for (int round = 0; c->kind == AVERAGING && round < ROUNDS; round++)
        expect_buckets(&run, rank, round);
    for (int i = 0; c->kind == COUNTING && i < EVALUATIONS; i++)
        expect_metrics(&run, i);
    scenario_close(&run);
}

/* ---- its record ------------------------------------------------------------------------------------------ */

static Allowance sent_forward_11(int64_t n, const Sizes *z)
{
    enum { SUMS = 3, WORDS_OF_A_DOUBLE = 2 };
    return (Allowance){sent_by_all_reduce(n, SUMS * WORDS_OF_A_DOUBLE), SUMS};
}

static Allowance sent_backward_11(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_reduce(n, z->N), z->part};
}

/* The bytes of the second round, which has one bucket. */
static double bytes_of_one_bucket(int rank, const Entry *entry, const double *numbers)
{
    const Label round = label_of(GRADIENT_OF, A_ROUND, 0, 1);
    const bool counts = entry->kind == TRAFFIC && entry->count == TRAFFIC_NUMBERS;
    return counts && label_equal(&entry->label, &round) ? 4 * numbers[0] : 0;
}

static const char *suffices_11(const Case *c, const Label *pass)
{
    return pass->of == METRICS_OF ? _("three sums over the replicas, mesh->dp, suffice") : NULL;
}

static Summand summand_11(Scenario *run, const Entry *want, int of, int on)
{
    char key[KEY_SIZE];
    if (want->check != GRADIENT)
        return (Summand){0};
    replica_bucket_key(key, want->label.index, want->label.step);
    return (Summand){random_input(run, key, of, want->shape, false),
                     of % run->c.tp == on % run->c.tp, 1.0 / replicas_of(&run->c)};
}

static Case usual_11(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.delay = 1;
    return c;
}

/* A global batch that the number of replicas divides, and sizes that tp divides. */
static Case whole_model(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = usual_11(lab, d, world, tp);
    c.kind = WHOLE_MODEL;
    c.B = 12;
    while (c.B % replicas_of(&c))
        c.B += 6;
    c.S = 5 + 2 * draw(d, 0, 1);
    c.A = tp < 3 ? 4 : tp;
    c.H = c.A * draw(d, 3, 5);
    c.p = 0.1;
    return c;
}

static int cases_11(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    for (int kind = DEALING; kind < WHOLE_MODEL; kind++) {
        Case *c = &cases[count++];
        *c = other_sizes(usual_11(lab, d, world, tp), d);
        c->kind = kind;
        c->delay = kind != DEALING;
    }
    /* A mean may be very small or very large, and replicas with zeros count too. */
    cases[AVERAGING].exponent = tp == 1 ? 20 : world == 4 ? -24 : 0;
    cases[AVERAGING].integers = world == 6;
    cases[AVERAGING].diverged = world == 4 && tp == 1;
    cases[count++] = whole_model(lab, d, world, tp);
    return count;
}

Lab lab_11 = {
    LAB_FILES_11,
    .title = N_("Data parallelism"),
    .points = {[ROWS] = 4, [GRADIENT] = 4, [METRICS] = 2, [LAYOUT] = 3, [COMMUNICATION] = 2},
    .layouts = "6x2 4x2 6x3 8x4 8x2 5x1 4x1 4x4 2x1 2x2 1",
    .has_replicas = true,
    .over_replicas = true,
    .sizes = SIZES_BSH,
    .starts_working = true,
    .written = {[ROWS] = "sampler_set_epoch",
                [GRADIENT] = "bucket_ready+buckets_finish",
                [METRICS] = "metrics_synchronise",
                [LAYOUT] = "bucket_ready+buckets_finish"},
    .at_once = {"bucket_ready", "group_all_reduce_start", "buckets_finish", false},
    .predict = {.question = N_(
                    "Eight ranks with tp = 2 train a model of 20,000 parameters, all split: each "
                    "rank has one bucket of 10,000 gradients. How many bytes do the ranks send "
                    "in all to average them once?"),
                .unit = N_("bytes"),
                .at = {.world = 8, .tp = 2, .kind = AVERAGING, .B = 20, .H = 500},
                .count = bytes_of_one_bucket},
    .examine = {.reasons = replicas_reasons,
                .more_reasons = replicas_more_reasons,
                .preface = other_bucket_is_right,
                .summand = summand_11,
                .entry = compare_rows,
                .suffices = suffices_11},
    .kinds = {[DEALING] = {.expect = expect_replicas},
              [AVERAGING] = {.expect = expect_replicas},
              [COUNTING] = {.expect = expect_replicas},
              [WHOLE_MODEL] = {.scenario = run_whole_model}},
    .forward = sent_forward_11,
    .backward = sent_backward_11,
    .usual = usual_11,
    .cases = cases_11,
};
#endif
