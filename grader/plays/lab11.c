#include "grader/plays/lab11.h"

#include <stdio.h>
#include <stdlib.h>

static const int64_t guard = -77; /* stands behind `mine` and must remain there */
enum { GUARDS = 64 };

/* ---- the sampler ---- */

static void write_rows(Play *play, Tail tail, int epoch)
{
    char name[NAME_SIZE];
    double *values;
    int64_t rows = lab11_rows(&play->c), dp = play->mesh->dp_degree, room = (rows + dp - 1) / dp;
    Sampler sampler = {.rows = rows, .seed = play->c.key, .tail = tail};
    sampler.order = malloc((size_t)rows * sizeof(int64_t));
    sampler.mine = malloc((size_t)(room + GUARDS) * sizeof(int64_t));
    for (int64_t i = 0; i < room + GUARDS; i++)
        sampler.mine[i] = guard;
    lab11_rows_name(name, tail, epoch);
    at(play, "sampler_set_epoch, %s", name);
    int64_t count = sampler_set_epoch(&sampler, epoch, play->mesh);
    int64_t used = 0; /* what was written, whatever count says */
    for (int64_t i = 0; i < room + GUARDS; i++)
        used = sampler.mine[i] != guard ? i + 1 : used;
    stream_entry(&play->stream, DEALT, ROWS, name, used + 1, &values)->shape = SHAPE(used + 1);
    values[0] = (double)count;
    for (int64_t i = 0; i < used; i++)
        values[i + 1] = (double)sampler.mine[i];
    free(sampler.order);
    free(sampler.mine);
}

/* ---- the gradients ---- */

static void play_buckets(Play *play, int round)
{
    char name[NAME_SIZE];
    Bucket buckets[BUCKETS] = {{0}};
    Sizes sizes = {.part = 0};
    tape_reset(play->tape, (TapeBatch){.seed = play->c.key});
    for (int i = 0; i < BUCKETS; i++) {
        lab11_bucket_name(name, i, round);
        int64_t count = lab11_bucket_size(&play->c, i);
        sizes.N += count;
        buckets[i].gradients = random_input(play, name, group_rank(play->mesh->world), SHAPE(count), false);
    }
    traffic_begin(play);
    for (int i = BUCKETS - 1; i >= 0; i--) { /* backward fills the last parameters' first */
        at(play, "bucket_ready, bucket %d, round %d", i, round + 1);
        bucket_ready(&buckets[i], play->mesh);
    }
    at(play, "buckets_finish, round %d", round + 1);
    buckets_finish(buckets, BUCKETS, play->mesh);
    snprintf(name, sizeof name, "gradients, round %d", round + 1);
    traffic_end(play, name, BACKWARD_BUDGET, &sizes);
    for (int i = 0; i < BUCKETS; i++) {
        lab11_bucket_name(name, i, round);
        write_values(play, GRADIENT, name, buckets[i].gradients);
    }
}

/* ---- the metrics ---- */

static void play_metrics(Play *play)
{
    double *values;
    Metrics metrics = lab11_metrics(play, group_rank(play->mesh->world) / play->mesh->tp_degree);
    Sizes sizes = {.part = 1};
    at(play, "metrics_synchronise");
    traffic_begin(play);
    metrics_synchronise(&metrics, play->mesh);
    traffic_end(play, "metrics", FORWARD_BUDGET, &sizes);
    stream_entry(&play->stream, VALUES, METRICS, "loss sum, correct, count", 3, &values)->shape = SHAPE(3);
    values[0] = metrics.loss_sum;
    values[1] = metrics.correct;
    values[2] = metrics.count;
}

void PLAY(Play *play)
{
    static const Tail tails[] = {PAD, DROP, EVERY_ROW_ONCE};
    if (play->c.kind == WHOLE_MODEL) {
        play_model(play);
        return;
    }
    for (int i = 0; i < 3; i++)
        for (int epoch = 0; epoch < EPOCHS; epoch++)
            write_rows(play, tails[i], epoch);
    for (int round = 0; round < ROUNDS; round++)
        play_buckets(play, round);
    play_metrics(play);
}
