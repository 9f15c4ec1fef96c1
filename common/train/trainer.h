/** @file
 * A run: what it holds, how it begins, its steps, its checkpoints, and what its ranks compare with each other.
 */
#pragma once

#include <signal.h>

#include "autograd/operations.h"
#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "mesh/mesh.h"
#include "optim/optim.h"
#include "train/buckets.h"
#include "train/report.h"

/** Trains as `config` says, on all ranks of `world`, and reports on rank 0. Collective. `stop` is
 *  looked at after each step: when it is set on any rank, all of them end after that step.
 *  @return false with `problem`, the same on every rank, on bad input */
bool train(TrainConfig *config, Group *world, const volatile sig_atomic_t *stop, Problem *problem);

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
    Path resumed;        /**< the checkpoint that the run goes on from, or "" */
    FILE *save_lock;     /**< of the SAVE folder, on rank 0 */
    int64_t saved_step;  /**< the step of the last checkpoint, or -1 */
    int64_t local_batch; /**< rows of a step on this replica */
    /** of each step; the reduction's part that was not hidden */
    double *step_seconds, *wait_seconds;
    Sent sent;     /**< in all steps */
    Metrics epoch; /**< sums of the epoch so far; behind its evaluation those of that */
} Trainer;

/** What this rank has sent since the groups were made. */
Sent sent_so_far(const Mesh *mesh);

/** Opens the data, makes samplers and batch. Collective; false with `problem`, on every rank, on bad input. */
bool trainer_open_data(Trainer *t, Problem *problem);

/** Makes model, optimiser and tape, with the initial weights that the seed gives. */
void trainer_build_model(Trainer *t, TrainConfig *config);

/** Opens the report on rank 0 and prints the configuration. Collective. */
bool trainer_open_report(Trainer *t, Problem *problem);

/** One step on `rows` [local_batch]: forward and backward in micro-batches, reduction, clipping, optimiser.
 *  @return what is to be reported, but for epoch and times; `metrics` gets this replica's sums */
StepReport trainer_step(Trainer *t, const int64_t *rows, Metrics *metrics);

/** A step, or a batch of an evaluation, is done: see stall_moved(). */
void trainer_moved(const Trainer *t);

/** The hint for a run whose numbers are no longer finite, which names the last checkpoint: `text` with room for [HINT_SIZE]. */
const char *hint_on_divergence(const Trainer *t, char *text);
enum { HINT_SIZE = sizeof((Problem){0}.hint) }; /**< of a hint, its end included */

/** The sums over all test rows, each once; incomplete where t->interrupted is set. Collective. */
Metrics trainer_evaluate(Trainer *t);

/** Frees all that is there, however far the opening came. */
void trainer_close(Trainer *t);

/* ---- agree.c: what the ranks of a run compare with each other ------------------------------------------ */

/** Did all ranks succeed, as this one did if `good`? Where not, `problem` becomes that of the first rank that failed, on every
 *  rank. Collective. */
bool agree(Group *group, bool good, Problem *problem);

/** Is x the same on all ranks of the group? Collective. */
bool is_same_over(Group *group, uint64_t x);

/** Do the kernels of all ranks run on devices of one type (see backend_device())? Collective.
 *  @return true if so; false with `problem` on every rank */
bool agree_on_device(Group *group, Problem *problem);

/** Compares checksums of what every rank of a tp group holds in full over that group, and of all weights over the replicas.
 *  Collective over the world.
 *  @return false with `problem`, on every rank, which names the first parameter that differs */
bool weights_are_equal(Model *model, int64_t step, Problem *problem);

/** Rank 0 warns when the ranks that split one model sit on several nodes, since they talk in every block; with `show` it
 *  prints a line a rank as well. Collective over the world. */
void map_report(const Mesh *mesh, bool show);

/* ---- checkpoint.c: SAVE, EVERY, RESUME ----------------------------------------------------------------- */

/** Before anything else is done: can SAVE be written, and is there something to RESUME from? A run that resumes goes on as if it had never
 *  ended, bit by bit at the same layout and up to rounding at another: sampler and dropout are keyed by seed and step, so weights, the
 *  optimiser's state and the step are all there is to save. All functions of this section are collective, and succeed or fail on all ranks
 *  with the same problem. */
bool checkpoint_prepare(Trainer *t, Problem *problem);

/** Reads weights and the optimiser's state, and sets the step, if there is something to resume from. The data
 * must be open and the model built; the metrics file then ends at this step. */
bool checkpoint_resume(Trainer *t, Problem *problem);

/** Prints where the run begins and where it saves. On rank 0. */
void checkpoint_describe(const Trainer *t);

/** Saves the state after the step that was just done, if EVERY or the end of the run (`last`) asks for it. What is not
 * finite is a problem, and the checkpoints before stay. */
bool checkpoint_save(Trainer *t, bool last, Problem *problem);

/* ---- step.c: a run in which nothing moves says so ----------------------------------------------------- */

/** Something has come to its end: a step, a batch of an evaluation. If nothing else does for `patience` seconds, or ten times as long
 *  as the longest took so far, stderr has a line about it, once. The run goes on: it may just be slow. */
void stall_moved(int patience);

/** Nothing is expected from here on. */
void stall_end(void);
