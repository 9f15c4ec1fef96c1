/** @file
 * What trainer.c (the loop) and opening.c (the beginning and the end of a run) share.
 */
#pragma once

#include <signal.h>

#include "autograd/operations.h"
#include "optim/scaler.h"
#include "train/buckets.h"
#include "train/report.h"
#include "train/trainer.h"

/** All that a run holds. */
typedef struct Trainer {
    const TrainConfig *config;         /**< the caller's */
    Group *world;                      /**< all ranks of the run; the caller's */
    const volatile sig_atomic_t *stop; /**< a signal has asked this rank to stop; the caller's */
    Mesh mesh;                         /**< the grid */
    Pool *pool;                        /**< memory of all tensors of this rank */
    Tape *tape;                        /**< of a micro-batch */
    Model *model;                      /**< its parameters */
    Bert *bert;                        /**< its layers; belongs to the model */
    Optimizer *optimizer;              /**< and its state */
    GradScaler scaler;                 /**< of zeros but in fp16 */
    ReviewSet *train, *test;           /**< test is NULL where there is no evaluation */
    Sampler sampler, test_sampler;     /**< of these two */
    Batch *batch;                      /**< of a micro-batch */
    BucketSet *buckets;                /**< of the model's gradients */
    Report *report;                    /**< on rank 0 */
    /** of the data that are used, steps of an epoch and in all, and those done */
    int64_t rows, steps_an_epoch, steps, step;
    int64_t first_step;  /**< done before this run began */
    bool interrupted;    /**< it was asked to end early */
    char *resumed;       /**< the checkpoint that the run goes on from, or NULL */
    FILE *save_lock;     /**< of the SAVE folder, on rank 0 */
    int64_t saved_step;  /**< the step of the last checkpoint, or -1 */
    int64_t local_batch; /**< rows of a step on this replica */
    double *step_seconds,
        *wait_seconds; /**< of each step; the reduction's part that was not hidden */
    Counter sent;      /**< in all steps */
    /** bytes in all steps, over the ranks that split a model and over the replicas */
    int64_t sent_tp, sent_dp;
    Metrics epoch; /**< sums of the epoch so far; behind its evaluation those of that */
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

/** The sums over the test rows of all replicas, each row once; where a rank is asked to stop, t->interrupted is set, and they
 * are not complete. Collective. */
Metrics trainer_evaluate(Trainer *t);

/** Frees all that is there, however far the opening came. */
void trainer_close(Trainer *t);
