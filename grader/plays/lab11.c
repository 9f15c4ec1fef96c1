#include "grader/plays/lab11.h"

#include <stdio.h>

#include "base/run.h"
#include "grader/plays/room.h"
#include "train/buckets.h"

/* Stand around `order` and `mine` and must remain there; what is read behind `order` is then seen in `mine`. */
static const int64_t order_mark = -78, mine_mark = -77;
enum { TOLD = 64 }; /* what was written behind `mine` is kept so far */

/* ---- the sampler ---- */

/* The returned length, the room in `mine`, and what was written there, whatever the length says. */
static void write_mine(Play *play, const Deal *deal, int64_t length, const Room *mine)
{
    char name[NAME_SIZE];
    double *values;
    int64_t written = room_last_written(mine) + 1;
    if (written > deal->rows + TOLD)
        written = deal->rows + TOLD;
    lab11_deal_name(name, deal);
    stream_entry(&play->stream, DEALT, ROWS, name, 2 + written, &values)->shape = SHAPE(2 + written);
    values[0] = (double)length;
    values[1] = (double)mine->count;
    for (int64_t i = 0; i < written; i++)
        values[2 + i] = (double)mine->numbers[i];
}

static void write_order(Play *play, const Deal *deal, const Room *order)
{
    char name[NAME_SIZE];
    double *values;
    int64_t written = room_last_written(order) + 1;
    if (written > deal->rows)
        written = deal->rows;
    lab11_order_name(name, deal);
    stream_entry(&play->stream, DEALT, ROWS, name, written, &values)->shape = SHAPE(written);
    for (int64_t i = 0; i < written; i++)
        values[i] = (double)order->numbers[i];
}

/* Where something was written outside of the room: how many numbers it is for, the first index and the last. */
static void write_outside(Play *play, const Deal *deal, const Room *room)
{
    char name[NAME_SIZE];
    double *values;
    int64_t first = room_written_before(room), last = room_last_written(room);
    if (first == 0 && last < room->count)
        return;
    lab11_outside_name(name, room->name, deal);
    stream_entry(&play->stream, DEALT, ROWS, name, 3, &values)->shape = SHAPE(3);
    values[0] = (double)room->count;
    values[1] = (double)first;
    values[2] = (double)last;
}

static void write_deal(Play *play, const Deal *deal)
{
    char name[NAME_SIZE];
    Room order, mine;
    int64_t dp = replicas_of(&play->c);
    room_take(&order, "order", deal->rows, order_mark);
    room_take(&mine, "mine", (deal->rows + dp - 1) / dp, mine_mark);
    Sampler sampler = {.rows = deal->rows,
                       .seed = play->c.key + (uint64_t)deal->seed,
                       .tail = deal->tail,
                       .order = order.numbers,
                       .mine = mine.numbers};
    Sampler before = sampler;
    lab11_deal_name(name, deal);
    at(play, "sampler_set_epoch, %s", name);
    traffic_begin(play);
    int64_t length = sampler_set_epoch(&sampler, deal->epoch, play->mesh);
    lab11_sampler_name(name, deal);
    traffic_end(play, name, FORWARD_BUDGET, &(Sizes){0});
    if (sampler.rows != before.rows || sampler.seed != before.seed || sampler.tail != before.tail ||
        sampler.order != before.order || sampler.mine != before.mine)
        misuse("the loop calls it again in the next epoch: fill `order` and `mine`, and leave the rest",
               "sampler_set_epoch: a field of the sampler was changed");
    write_outside(play, deal, &mine);
    write_outside(play, deal, &order);
    write_mine(play, deal, length, &mine);
    write_order(play, deal, &order);
    room_free(&order);
    room_free(&mine);
}

/* ---- the gradients ---- */

static void play_buckets(Play *play, int round)
{
    char name[NAME_SIZE];
    int count = lab11_buckets(round);
    Bucket buckets[MOST_BUCKETS] = {{0}};
    Tensor *gradients[MOST_BUCKETS];
    Sizes sizes = {.part = count};
    tape_reset(play->tape, (TapeBatch){.seed = play->c.key});
    for (int i = 0; i < count; i++) {
        lab11_bucket_name(name, i, round);
        int64_t size = lab11_bucket_size(&play->c, i);
        sizes.N += size;
        gradients[i] = random_input(play, name, group_rank(play->mesh->world), SHAPE(size), false);
        buckets[i].gradients = gradients[i];
    }
    traffic_begin(play);
    for (int i = 0; i < count; i++) {
        at(play, "bucket_ready, bucket %d, round %d", i, round + 1);
        bucket_ready(&buckets[i], play->mesh);
    }
    at(play, "buckets_finish, round %d", round + 1);
    buckets_finish(buckets, count, play->mesh);
    snprintf(name, sizeof name, "gradients, round %d", round + 1);
    traffic_end(play, name, BACKWARD_BUDGET, &sizes);
    for (int i = 0; i < count; i++) {
        bucket_hold(&buckets[i], gradients[i]);
        lab11_bucket_name(name, i, round);
        write_values(play, GRADIENT, name, gradients[i]);
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
