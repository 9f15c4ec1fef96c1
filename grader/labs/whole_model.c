/* The whole model at a layout: two steps of a small BERT. The rows of a step are dealt here, not by a lab's sampler, so that
 * each step has the same global batch at every layout. */
#include <stdio.h>

#include "grader/labs/replicas.h"
#include "model/bert.h"
#include "train/buckets.h"

enum { MODEL_STEPS = 2 };

static const double rate = 0.5;

/* This replica's rows of a global batch of c->B rows: every dp-th, from dp_rank on. */
static Tensor *logits_of(Scenario *run, const Bert *bert, int step, Tensor **labels)
{
    const Case *c = &run->c;
    const Mesh *mesh = run->mesh;
    int64_t local = c->B / mesh->dp_degree;
    tape_reset(run->tape, (TapeBatch){c->key, step, local, run->samples, true});
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
    return bert_forward(bert, ids, mask, mesh);
}

static void one_step(Scenario *run, const Bert *bert, BucketSet *buckets, int step)
{
    double *values;
    Tensor *labels;
    at(run, label_of(ITSELF, THE_MODEL, 0, step));
    model_clear_gradients(run->model);
    Tensor *logits = logits_of(run, bert, step, &labels);
    Tensor *loss = cross_entropy_mean(logits, labels, labels->shape.size[0], NULL);
    double mean = (double)reals(loss)[0];
    bucket_set_begin(buckets, run->tape);
    tape_backward(run->tape, loss, NULL);
    bucket_set_finish(buckets, run->tape);
    kernel_sgd_step(model_arena_size(run->model), model_weights(run->model),
                    model_gradients(run->model), rate, 0);
    if (run->mesh->dp)
        group_sum(run->mesh->dp, &mean, 1);
    stream_entry(&run->stream, VALUES, LAYOUT, label_of(LOSS_OF, THE_MODEL, 0, step), 1, &values)
        ->shape = SHAPE(1);
    values[0] = mean / run->mesh->dp_degree;
    write_arena(run, LAYOUT, GRADIENT_OF, step);
}

void run_whole_model(Scenario *run)
{
    const Case *c = &run->c;
    BertConfig config = {.vocabulary = c->V,
                         .hidden = c->H,
                         .layers = 2,
                         .heads = c->A,
                         .classes = 2,
                         .dropout = c->p};
    run->model = model_new(run->pool, run->mesh, c->key);
    Bert *bert = bert_new(model_builder(run->model), &config);
    model_finish(run->model);
    BucketSet *buckets = bucket_set_new(run->model, 4096);
    for (int step = 0; step < MODEL_STEPS; step++)
        one_step(run, bert, buckets, step);
    bucket_set_free(buckets);
}
