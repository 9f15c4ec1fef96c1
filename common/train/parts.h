/** @file
 * What trainer.c (the loop) and opening.c (the beginning and the end of a run) share.
 */
#ifndef BALISE_TRAINER_PARTS_H
#define BALISE_TRAINER_PARTS_H

#include "autograd/operations.h"
#include "optim/scaler.h"
#include "train/buckets.h"
#include "train/report.h"
#include "train/trainer.h"

/** All that a run holds. */
typedef struct Trainer {
    const TrainConfig *config;
    Group *world;
    Mesh mesh;
    Pool *pool;
    Tape *tape;
    Model *model;
    Bert *bert;
    Optimizer *optimizer;
    GradScaler scaler; /* of zeros but in fp16 */
    ReviewSet *train, *test;
    Sampler sampler, test_sampler;
    Batch *batch; /* of a micro-batch */
    BucketSet *buckets;
    Report *report; /* on rank 0 */
    int64_t rows, steps_an_epoch, steps, step;
    int64_t first_step; /* done before this run began */
    bool interrupted;
    char *resumed;                       /* the checkpoint that the run goes on from, or NULL */
    FILE *save_lock;                     /* of the SAVE folder, on rank 0 */
    int64_t saved_step;                  /* the step of the last checkpoint, or -1 */
    int64_t local_batch;                 /* rows of a step on this replica */
    double *step_seconds, *wait_seconds; /* of each step; the reduction's part that was not hidden */
    Counter sent;                        /* in all steps */
    int64_t sent_tp, sent_dp;
    Metrics epoch;
} Trainer;

/** Opens the data and makes samplers and the batch. Collective; false with `problem`, on every rank, on bad
 * input. */
bool trainer_open_data(Trainer *t, Problem *problem);

/** Makes model, optimiser and tape, with the initial weights that the seed gives. */
void trainer_build_model(Trainer *t, TrainConfig *config);

/** Opens the report on rank 0 and prints the configuration. Collective. */
bool trainer_open_report(Trainer *t, Problem *problem);

/** One step on `rows` [local_batch]: forward and backward in micro-batches, reduction, clipping, optimiser.
 *  @return what is to be reported, but for epoch and times; `metrics` gets this replica's sums */
StepReport trainer_step(Trainer *t, const int64_t *rows, Metrics *metrics);

/** A step, or a batch of an evaluation, is done (see stall.h). */
void trainer_moved(const Trainer *t);

/** The sums over the test rows of all replicas, each row once. Collective. */
Metrics trainer_evaluate(Trainer *t);

/** Frees all that is there, however far the opening came. */
void trainer_close(Trainer *t);

#endif
