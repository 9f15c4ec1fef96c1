/* Lab 11: the sampler's calls, the buckets of a round, the replicas' metrics; the whole model at a
 * layout. */
#include "grader/labs/replicas.h"

#include <math.h>
#include <stdio.h>

#include "model/transformer.h"
#include "train/buckets.h"

/* The numbers of rows: a random one, one without a tail, those with the longest and the shortest
 * tail, and fewer rows than replicas. */
enum { SETS = 5, TAILS = 3, USUAL_DEALS = SETS * TAILS * 2 };

static int64_t rows_of(const Case *c, int set)
{
    int64_t dp = replicas_of(c);
    const int64_t rows[SETS] = {c->V, 3 * dp, 4 * dp - 1, 3 * dp + 1, 1};
    return rows[set];
}

/* Epochs chosen to reveal an order that recurs. Their differences include a multiple of each number
 * up to 25, of 1024 and of 100. */
static const int epochs[] = {0, 1, 4, 10, 18, 23, 25, 41, 25600};
enum { EPOCHS = sizeof epochs / sizeof *epochs, LATER = EPOCHS - 2 };

/* In addition to the usual calls: another seed; the first epoch again; later epochs; all epochs with
 * DROP, each of which should leave out different rows; and a large data set, in the last epoch. */
static bool other_deal(const Case *c, int i, Deal *deal)
{
    int64_t dp = replicas_of(c);
    *deal = (Deal){.rows = c->V, .tail = PAD, .seed = i == 0, .again = i == 1};
    if (i < 2)
        return true;
    if ((i -= 2) < LATER) {
        deal->epoch = epochs[2 + i];
        return true;
    }
    if ((i -= LATER) < EPOCHS) {
        *deal = (Deal){.rows = 7 * dp - 1, .tail = DROP, .epoch = epochs[i]};
        return true;
    }
    *deal = (Deal){.rows = 1000 + c->V, .tail = PAD, .epoch = epochs[EPOCHS - 1]};
    return i == EPOCHS;
}

bool replica_deal(const Case *c, int i, Deal *deal)
{
    static const Tail tails[TAILS] = {PAD, DROP, EVERY_ROW_ONCE};
    if (i >= USUAL_DEALS)
        return other_deal(c, i - USUAL_DEALS, deal);
    *deal = (Deal){.rows = rows_of(c, i / 6), .tail = tails[i / 2 % TAILS], .epoch = i % 2};
    return true;
}

Label replica_deal_label(What what, const Deal *deal)
{
    Label label = label_of(what, A_DEAL, (int)deal->rows, deal->epoch);
    label.detail =
        (int)deal->tail | (deal->seed ? DEAL_OF_ANOTHER_SEED : 0) | (deal->again ? DEAL_AGAIN : 0);
    return label;
}

int replica_buckets(int round)
{
    static const int buckets[ROUNDS] = {3, 1, MOST_BUCKETS, 1};
    return buckets[round];
}

int64_t replica_bucket_size(const Case *c, int bucket)
{
    const int64_t more = c->world == 2 ? 40000 : 5000; /* where it is cheap, beyond int16_t */
    if (bucket == 2)
        return 3; /* fewer than there are replicas in many cases */
    return (int64_t)c->B * (bucket + 1) * c->H + bucket + (bucket == 1 ? more : 0);
}

void replica_bucket_key(char key[KEY_SIZE], int bucket, int round)
{
    snprintf(key, KEY_SIZE, "gradients in bucket %d, round %d", bucket, round + 1);
}

/* Numbers that neither a float nor an int can represent, as with much data; the last of four replicas has
 * no rows; the training of the first diverges once. */
Metrics replica_metrics(const Scenario *run, int replica, int evaluation)
{
    if (replicas_of(&run->c) == 4 && replica == 3)
        return (Metrics){0};
    const bool diverged = replica == 0 && evaluation == DIVERGED_EVALUATION,
               infinite = replica == 0 && evaluation == INFINITE_EVALUATION;
    replica += evaluation * MAX_RANKS;
    double count = 0x1p32 * (double)(1 + random_below(run, "share", replica, 3)) +
                   (double)(2 * random_below(run, "count", replica, 1 << 20) + 1);
    const double loss = count * (0.5 + (double)random_below(run, "loss", replica, 64) / 64);
    return (Metrics){diverged   ? (double)NAN
                     : infinite ? (double)INFINITY
                                : loss,
                     (double)random_below(run, "correct", replica, (int64_t)count), count};
}

/* The whole model at a layout: two steps of a small BERT. The scenario, not a lab's sampler, deals
 * the rows, so that each step has the same global batch at every layout. */
enum { MODEL_STEPS = 2 };

/* A judged case has many small buckets, and a high learning rate, so that each step changes the
 * weights noticeably. A timed training has many steps, and buckets as large as those of make
 * train. */
static double rate_of(const Case *c)
{
    return c->steps ? 0.1 : 0.5;
}

static int64_t bucket_bytes_of(const Scenario *run)
{
    return run->c.steps ? run->model->arena_size * (int64_t)sizeof(real) / 8 : 4096;
}

/* The logits of this replica's rows of a global batch of c->B rows: every dp-th row, from row dp_rank
 * on. */
static Tensor *logits_of(Scenario *run, const Transformer *bert, int step, Tensor **labels)
{
    const Case *c = &run->c;
    const Mesh *mesh = run->mesh;
    int64_t local = c->B / mesh->dp_degree;
    tape_reset(run->tape, (TapeBatch){.seed = c->key,
                                      .step = step,
                                      .count = local,
                                      .samples = run->samples,
                                      .training = true});
    model_use_tape(run->model, run->tape);
    Tensor *ids = tape_host_tensor(run->tape, INT32, SHAPE(local, c->S), whole());
    Tensor *mask = tape_host_tensor(run->tape, INT32, SHAPE(local, c->S), whole());
    *labels = tape_host_tensor(run->tape, INT32, SHAPE(local), whole());
    for (int64_t b = 0; b < local; b++) {
        int64_t row = (int64_t)step * c->B + mesh->dp_rank + b * mesh->dp_degree;
        int64_t tokens = 1 + random_below(run, "tokens", row, c->S);
        run->samples[b] = row;
        ints(*labels)[b] = (int32_t)random_below(run, "label", row, 2);
        for (int64_t s = 0; s < c->S; s++) {
            ints(ids)[b * c->S + s] = (int32_t)random_below(run, "id", row * c->S + s, c->V);
            ints(mask)[b * c->S + s] = s < tokens;
        }
    }
    return transformer_forward(bert, ids, mask, mesh);
}

static void one_step(Scenario *run, const Transformer *bert, BucketSet *buckets, int step)
{
    double *values;
    Tensor *labels;
    at(run, label_of(ITSELF, THE_MODEL, 0, step));
    work_begin(run);
    model_clear_gradients(run->model);
    Tensor *logits = logits_of(run, bert, step, &labels);
    Tensor *loss = cross_entropy_mean(logits, labels, labels->shape.size[0], NULL);
    double mean = (double)reals(loss)[0];
    bucket_set_begin(buckets, run->tape, 0, 1);
    tape_backward(run->tape, loss, NULL);
    bucket_set_finish(buckets, run->tape);
    model_must_be_added(run->model, ALL_AXES, "buckets_finish");
    kernel_sgd_step(run->model->arena_size, model_weights(run->model), model_gradients(run->model),
                    rate_of(&run->c), 0);
    at(run, label_of(LOSS_OF, THE_MODEL, 0, step));
    if (run->mesh->dp)
        group_sum(run->mesh->dp, &mean, 1);
    stream_entry(&run->stream, VALUES, LAYOUT, label_of(LOSS_OF, THE_MODEL, 0, step), 1, &values)
        ->shape = SHAPE(1);
    values[0] = mean / run->mesh->dp_degree;
    if (!run->c.steps)
        write_arena(run, LAYOUT, GRADIENT_OF, step);
}

void run_whole_model(Scenario *run)
{
    const Case *c = &run->c;
    TransformerConfig config = {.architecture = &architecture_bert,
                                .vocabulary = c->V,
                                .hidden = c->H,
                                .layers = 2,
                                .heads = c->A,
                                .classes = 2,
                                .dropout = c->p};
    run->model = model_new(run->pool, run->mesh, c->key);
    Transformer *bert = transformer_new(run->model->builder, &config, transformer_whole(&config));
    model_finish(run->model);
    BucketSet *buckets = bucket_set_new(run->model, bucket_bytes_of(run));
    for (int step = 0; step < (c->steps ? c->steps : MODEL_STEPS); step++)
        one_step(run, bert, buckets, step);
    bucket_set_free(buckets);
}
