/** @file
 * What trainer.c (the loop) and opening.c (the beginning and the end of a run) share.
 */
#ifndef BALISE_TRAINER_PARTS_H
#define BALISE_TRAINER_PARTS_H

#include "autograd/operations.h"
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
    ReviewSet *train, *test;
    Sampler sampler, test_sampler;
    Batch *batch;
    Report *report; /* on rank 0 */
    int64_t rows, steps_an_epoch, steps, step;
    int64_t local_batch; /* rows of a step on this replica */
    double *step_seconds;
    Counter sent; /* in all steps */
    Metrics epoch;
} Trainer;

/** Opens the data and makes samplers and the batch. Collective; false with `problem`, on every rank, on bad
 * input. */
bool trainer_open_data(Trainer *t, Problem *problem);

/** Makes model, optimiser and tape, with the initial weights that the seed gives. */
void trainer_build_model(Trainer *t, TrainConfig *config);

/** Opens the report on rank 0 and prints the configuration. Collective. */
bool trainer_open_report(Trainer *t, Problem *problem);

/** Frees all that is there, however far the opening came. */
void trainer_close(Trainer *t);

#endif
