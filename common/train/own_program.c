/* balise_program.h: what a program of a user's own calls. */
#include "balise_program.h"

#include <stdlib.h>

#include "autograd/operations.h"
#include "base/language.h"
#include "base/run.h"
#include "mesh/mesh.h"
#include "optim/optim.h"
#include "train/buckets.h"
#include "train/config.h"
#include "train/program.h"
#include "train/trainer.h"

typedef struct OwnProgram {
    Program open; /* what the user sees; first, so that a Program is an OwnProgram */
    TrainConfig config;
    Group *world;
    Pool *pool;
    Model *model;
    Tape *tape;
    BucketSet *buckets; /* NULL before the first step, as are the two below */
    Optimizer *optimizer;
    int64_t *samples; /* [rows of the step] 0, 1, ... */
    int64_t step;
} OwnProgram;

Program *program_open(int argc, char **argv)
{
    language_begin();
    OwnProgram *own = calloc(1, sizeof *own);
    TrainConfig *config = &own->config;
    Problem problem = {0};
    bool good = train_config(config, argc, argv, &problem);
    if (config->dry)
        exit(program_dry(good && train_config_grid(config, config->ranks, &problem), &problem));
    own->world = program_begin(argc, argv);
    good = program_devices(own->world, &problem) &&
           agree(own->world, good && train_config_grid(config, group_size(own->world), &problem),
                 &problem);
    if (!good)
        exit(program_end(own->world, good, &problem));
    program_warn(own->world);
    backend_set_threads(config->threads);
    mesh_open(&own->open.mesh, own->world, config->tp, config->pp);
    own->pool = pool_new(config->memory, false);
    own->model = model_new(own->pool, &own->open.mesh, config->seed);
    own->open.builder = own->model->builder;
    own->tape = tape_new(own->pool, &own->open.mesh);
    return &own->open;
}

static void finish_model(OwnProgram *own)
{
    enum { BUCKET_BYTES = 25 << 20 }; /* PyTorch's */
    model_finish(own->model);
    model_use_tape(own->model, own->tape);
    own->buckets = bucket_set_new(own->model, BUCKET_BYTES);
    own->optimizer = optimizer_new(own->model, &own->config.optimizer);
}

/* Ctrl-C ends the program between two steps. */
static void end_if_asked(OwnProgram *own)
{
    double asked = program_stop;
    group_sum(own->world, &asked, 1);
    if (asked > 0)
        exit(program_close(&own->open));
}

Range program_begin_step(Program *program, int64_t rows)
{
    OwnProgram *own = (OwnProgram *)program;
    const Mesh *mesh = &program->mesh;
    const int64_t mine = rows / mesh->dp_degree, first = mine * mesh->dp_rank;
    if (rows < 1 || rows % mesh->dp_degree)
        misuse(
            "the mean over the replicas is the mean over the rows only if each replica has as many",
            "program_begin_step: %lld rows cannot be split evenly over %d replicas",
            (long long)rows, mesh->dp_degree);
    if (!own->optimizer)
        finish_model(own);
    end_if_asked(own);
    tape_must_be_summed(own->tape);
    own->samples = realloc(own->samples, (size_t)rows * sizeof *own->samples);
    for (int64_t i = 0; i < rows; i++)
        own->samples[i] = i;
    model_clear_gradients(own->model);
    tape_reset(own->tape, (TapeBatch){.seed = own->config.seed,
                                      .step = own->step++,
                                      .count = mine,
                                      .samples = own->samples + first,
                                      .training = true});
    return (Range){first, first + mine};
}

/* The tape of the step. */
static Tape *tape_of_step(Program *program, const char *function)
{
    OwnProgram *own = (OwnProgram *)program;
    if (own->step == 0)
        misuse("each step begins with program_begin_step", "%s: no step has begun", function);
    return own->tape;
}

Tensor *program_reals(Program *program, Shape shape, const float *numbers)
{
    return tape_reals(tape_of_step(program, "program_reals"), shape, whole(), numbers, false);
}

Tensor *program_ints(Program *program, Shape shape, const int32_t *numbers)
{
    return tape_ints(tape_of_step(program, "program_ints"), shape, numbers);
}

Tensor *cross_entropy(Tensor *logits, Tensor *labels)
{
    must_not_be_ids("cross_entropy", logits);
    return cross_entropy_mean(logits, labels, logits->shape.size[0], NULL);
}

void program_backward(Program *program, Tensor *y, Tensor *dy)
{
    OwnProgram *own = (OwnProgram *)program;
    Tape *tape = tape_of_step(program, "program_backward");
    must_not_be_ids("program_backward", y);
    if (dy ? !shape_equal(y->shape, dy->shape) : tensor_count(y) != 1)
        misuse("dy is the gradient of y; it may be NULL only for a loss of one number",
               "program_backward: y is %s, and dy is %s", TENSOR_TEXT(y),
               dy ? TENSOR_TEXT(dy) : "NULL");
    bucket_set_begin(own->buckets, tape, 0, 1);
    tape_backward(tape, y, dy);
    bucket_set_finish(own->buckets, tape);
    sum_norms_over_tp(own->model, tape);
    model_must_be_added(own->model, ALL_AXES, "buckets_finish");
}

void program_update(Program *program, double rate)
{
    optimizer_step(((OwnProgram *)program)->optimizer, rate);
}

int program_close(Program *program)
{
    OwnProgram *own = (OwnProgram *)program;
    Group *world = own->world;
    if (own->optimizer) {
        bucket_set_free(own->buckets);
        optimizer_free(own->optimizer);
    }
    tape_free(own->tape);
    model_free(own->model);
    pool_free(own->pool);
    free(own->samples);
    free(own);
    return program_end(world, true, NULL);
}
