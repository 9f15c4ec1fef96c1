/* Lab 11: the mean of the gradients over the replicas, and the sums of the metrics. The rows that the replicas read are
 * judged as sets; see rows.c. */
#include "backend/reference/arithmetic.h"
#include "grader/judge/plays.h"
#include "grader/judge/suspects.h"
#include "grader/plays/lab11.h"

#include <stdio.h>

/* The ranks whose gradients are averaged: those that hold the same shard, or what a suspect takes for them. */
typedef struct Averaged {
    int first, stride, count;
    double divisor;
} Averaged;

static Averaged averaged(const Case *c, int rank, int suspect)
{
    int dp = c->world / c->tp;
    Averaged a = {rank % c->tp, c->tp, dp, dp};
    if (suspect == NOT_DIVIDED)
        a.divisor = 1;
    if (suspect == DIVIDED_TWICE)
        a.divisor = (double)dp * dp;
    if (suspect == DIVIDED_BY_WORLD || suspect == DIVIDED_BY_TP)
        a.divisor = suspect == DIVIDED_BY_TP ? c->tp : c->world;
    if (suspect == OVER_TP || suspect == OVER_TP_BY_DP)
        a = (Averaged){rank / c->tp * c->tp, 1, c->tp, suspect == OVER_TP ? c->tp : dp};
    if (suspect == OVER_THE_WORLD || suspect == OVER_THE_WORLD_BY_DP)
        a = (Averaged){0, 1, c->world, suspect == OVER_THE_WORLD ? c->world : dp};
    if (suspect == ONE_REPLICA || suspect == DIVIDED_ALONE)
        a = (Averaged){rank, 1, 1, suspect == ONE_REPLICA ? 1 : dp};
    return a;
}

static void expect_buckets(Play *play, int rank, int suspect, int round)
{
    char name[NAME_SIZE];
    int count = lab11_buckets(round);
    Sizes sizes = {.part = count};
    Averaged a = averaged(&play->c, rank, suspect);
    tape_reset(play->tape, (TapeBatch){.seed = play->c.key});
    for (int i = 0; i < count; i++)
        sizes.N += lab11_bucket_size(&play->c, i);
    snprintf(name, sizeof name, "gradients, round %d", round + 1);
    traffic_end(play, name, BACKWARD_BUDGET, &sizes);
    for (int i = 0; i < count; i++) {
        lab11_bucket_name(name, i, round);
        Shape shape = SHAPE(lab11_bucket_size(&play->c, i));
        const Order order = reference_order(a.count); /* as the replicas may add, in an order of their own */
        int64_t k = order.first;
        Tensor *sum = random_input(play, name, a.first + (int)k * a.stride, shape, false);
        for (int64_t n = 1; n < a.count; n++) {
            k = order_next(order, k);
            sum = add(sum, random_input(play, name, a.first + (int)k * a.stride, shape, false));
        }
        kernel_vector_scale(tensor_count(sum), 1 / a.divisor, reals(sum));
        write_values(play, GRADIENT, name, sum);
    }
}

static void expect_metrics(Play *play, int rank, int suspect, int evaluation)
{
    char name[NAME_SIZE];
    double *values;
    Sizes sizes = {0};
    Metrics sum = {0};
    int dp = play->c.world / play->c.tp, mine = rank / play->c.tp;
    for (int replica = 0; replica < dp; replica++) {
        Metrics m = lab11_metrics(play, replica, evaluation);
        double times = suspect == OVER_THE_WORLD ? play->c.tp
                       : suspect == OVER_TP      ? play->c.tp * (replica == mine)
                       : suspect == ONE_REPLICA  ? replica == mine
                                                 : 1;
        sum.loss_sum += times * m.loss_sum;
        sum.correct += times * m.correct;
        sum.count += times * m.count;
    }
    snprintf(name, sizeof name, "metrics, evaluation %d", evaluation + 1);
    traffic_end(play, name, FORWARD_BUDGET, &sizes);
    lab11_metrics_name(name, evaluation);
    stream_entry(&play->stream, VALUES, METRICS, name, 3, &values)->shape = SHAPE(3);
    values[0] = sum.loss_sum;
    values[1] = sum.correct;
    values[2] = sum.count;
}

void expect_replicas(const Case *c, int rank, int suspect, Stream stream)
{
    Deal deal;
    Mesh mesh = {.tp_degree = 1, .dp_degree = 1};
    Play play = {.c = *c, .mesh = &mesh, .stream = stream};
    char name[NAME_SIZE];
    double *none;
    play.pool = pool_new(0, false);
    play.tape = tape_new(play.pool, &mesh);
    for (int i = 0; c->kind == DEALING && lab11_deal(c, i, &deal); i++) {
        lab11_sampler_name(name, &deal);
        stream_entry(&play.stream, TRAFFIC, COMMUNICATION, name, 3, &none);
        none[0] = none[1] = none[2] = 0; /* every rank knows all that it needs */
        lab11_deal_name(name, &deal);
        stream_entry(&play.stream, DEALT, ROWS, name, 0, &none);
    }
    for (int round = 0; c->kind == AVERAGING && round < ROUNDS; round++)
        expect_buckets(&play, rank, suspect, round);
    for (int i = 0; c->kind == COUNTING && i < LAB11_EVALUATIONS; i++)
        expect_metrics(&play, rank, suspect, i);
    tape_free(play.tape);
    pool_free(play.pool);
}
