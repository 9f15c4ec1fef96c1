#include "grader/plays/lab11.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/run.h"

/* Stand behind `order` and `mine` and must remain there; what is read behind `order` is then seen in `mine`. */
static const int64_t order_guard = -78, mine_guard = -77;
enum { GUARDS = 64 };

/* ---- the sampler ---- */

static int64_t *guarded(int64_t room, int64_t guard)
{
    int64_t *numbers = malloc((size_t)(room + GUARDS) * sizeof *numbers);
    for (int64_t i = 0; i < room + GUARDS; i++)
        numbers[i] = guard;
    return numbers;
}

/* How many numbers were written, also behind the room for them. */
static int64_t written(const int64_t *numbers, int64_t room, int64_t guard)
{
    int64_t count = room + GUARDS;
    while (count > 0 && numbers[count - 1] == guard)
        count--;
    return count;
}

static void write_numbers(Play *play, const char *name, const int64_t *numbers, int64_t count)
{
    double *values;
    stream_entry(&play->stream, DEALT, ROWS, name, count, &values)->shape = SHAPE(count);
    for (int64_t i = 0; i < count; i++)
        values[i] = (double)numbers[i];
}

/* Writes the returned length, the room in `mine`, and all that was written there, whatever the length says. */
static void write_deal(Play *play, const Deal *deal)
{
    char name[NAME_SIZE];
    int64_t dp = replicas_of(&play->c), room = (deal->rows + dp - 1) / dp;
    int64_t *order = guarded(deal->rows, order_guard), *record = guarded(2 + room, mine_guard);
    Sampler sampler = {.rows = deal->rows,
                       .seed = play->c.key + (uint64_t)deal->seed,
                       .tail = deal->tail,
                       .order = order,
                       .mine = record + 2};
    Sampler before = sampler;
    lab11_deal_name(name, deal);
    at(play, "sampler_set_epoch, %s", name);
    traffic_begin(play);
    record[0] = sampler_set_epoch(&sampler, deal->epoch, play->mesh);
    lab11_sampler_name(name, deal);
    traffic_end(play, name, FORWARD_BUDGET, &(Sizes){0});
    if (sampler.rows != before.rows || sampler.seed != before.seed || sampler.tail != before.tail ||
        sampler.order != before.order || sampler.mine != before.mine)
        misuse("the loop calls it again in the next epoch: fill `order` and `mine`, and leave the rest",
               "sampler_set_epoch: a field of the sampler was changed");
    if (record[1] != mine_guard)
        misuse("the first row is mine[0]",
               "sampler_set_epoch: rows are written before the beginning of `mine`");
    record[1] = room;
    lab11_deal_name(name, deal);
    write_numbers(play, name, record, written(record, 2 + room, mine_guard));
    lab11_order_name(name, deal);
    write_numbers(play, name, order, written(order, deal->rows, order_guard));
    free(order);
    free(record);
}

/* ---- the gradients ---- */

static void play_buckets(Play *play, int round)
{
    char name[NAME_SIZE];
    int count = lab11_buckets(round);
    Bucket buckets[MOST_BUCKETS] = {{0}};
    Sizes sizes = {.part = count};
    tape_reset(play->tape, (TapeBatch){.seed = play->c.key});
    for (int i = 0; i < count; i++) {
        lab11_bucket_name(name, i, round);
        int64_t size = lab11_bucket_size(&play->c, i);
        sizes.N += size;
        buckets[i].gradients = random_input(play, name, group_rank(play->mesh->world), SHAPE(size), false);
    }
    traffic_begin(play);
    for (int i = count - 1; i >= 0; i--) { /* backward fills the last parameters' first */
        at(play, "bucket_ready, bucket %d, round %d", i, round + 1);
        bucket_ready(&buckets[i], play->mesh);
    }
    at(play, "buckets_finish, round %d", round + 1);
    buckets_finish(buckets, count, play->mesh);
    snprintf(name, sizeof name, "gradients, round %d", round + 1);
    traffic_end(play, name, BACKWARD_BUDGET, &sizes);
    for (int i = 0; i < count; i++) {
        lab11_bucket_name(name, i, round);
        write_values(play, GRADIENT, name, buckets[i].gradients);
    }
}

/* ---- the metrics ---- */

static void play_metrics(Play *play, int evaluation)
{
    double *values;
    char name[NAME_SIZE];
    Metrics metrics = lab11_metrics(play, group_rank(play->mesh->world) / play->mesh->tp_degree, evaluation);
    Sizes sizes = {0};
    at(play, "metrics_synchronise, evaluation %d", evaluation + 1);
    traffic_begin(play);
    metrics_synchronise(&metrics, play->mesh);
    snprintf(name, sizeof name, "metrics, evaluation %d", evaluation + 1);
    traffic_end(play, name, FORWARD_BUDGET, &sizes);
    lab11_metrics_name(name, evaluation);
    stream_entry(&play->stream, VALUES, METRICS, name, 3, &values)->shape = SHAPE(3);
    values[0] = metrics.loss_sum;
    values[1] = metrics.correct;
    values[2] = metrics.count;
}

void PLAY(Play *play)
{
    Deal deal;
    if (play->c.kind == WHOLE_MODEL)
        play_model(play);
    for (int i = 0; play->c.kind == COUNTING && i < LAB11_EVALUATIONS; i++)
        play_metrics(play, i);
    for (int i = 0; play->c.kind == DEALING && lab11_deal(&play->c, i, &deal); i++)
        write_deal(play, &deal);
    for (int round = 0; play->c.kind == AVERAGING && round < ROUNDS; round++)
        play_buckets(play, round);
}
