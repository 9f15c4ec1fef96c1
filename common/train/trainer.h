/** @file
 * A training run: its state, its start, its steps, its checkpoints, and its ranks' comparisons.
 */
#pragma once

#include <signal.h>

#include "autograd/operations.h"
#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "mesh/mesh.h"
#include "model/stage.h"
#include "optim/optim.h"
#include "train/buckets.h"
#include "train/report.h"

/** Trains as `config` says, on all ranks of `world`; rank 0 reports. Collective. Checks `stop`
 *  after each step: if it is set on any rank, all ranks end after that step.
 *  @return false with `problem`, the same on every rank, on bad input or if the run fails */
bool train(TrainConfig *config, Group *world, const volatile sig_atomic_t *stop, Problem *problem);

/** The state of a run. */
typedef struct Trainer Trainer;

/** How the replicas keep one model. A step calls these functions in this order, on all ranks.
 *  `gradients` and `finish` return the seconds of their exchanges. */
typedef struct Replicas {
    /** makes the optimiser, with state for the weights that this rank updates */
    Optimizer *(*optimizer)(Model *model, const OptimizerConfig *config);
    void (*begin)(Trainer *t,
                  int pass);         /**< before each backward pass of a step, from 0; or NULL */
    double (*gradients)(Trainer *t); /**< after the last one: completes the optimiser's gradients */
    const char *adds; /**< the labs' function that sums them over the replicas, or NULL */
    double (*norm)(const Optimizer *optimizer); /**< of the model's gradients, for clipping */
    void (*step)(Optimizer *optimizer, double rate, Tape *tape); /**< with those gradients */
    /** NULL unless each replica steps with its own gradients. Called after `step` (from 1), which
     *  used `targets` rows or tokens, and with 0 targets to repeat the question. `last`: before the
     *  next step, the model is evaluated or saved, or the run ends. */
    double (*finish)(Trainer *t, int64_t step, double targets, bool last);
} Replicas;

/** The way that ZERO and AVERAGE choose. */
const Replicas *replicas_as_set(const TrainConfig *config);

struct Trainer {
    const TrainConfig *config;         /**< the caller's */
    Group *world;                      /**< all ranks of the run; the caller's */
    const volatile sig_atomic_t *stop; /**< a signal sets it to end the run; the caller's */
    Mesh mesh;                         /**< the grid */
    Pool *pool;                        /**< memory of all this rank's tensors */
    Model *model;                      /**< its parameters */
    Stage *stage; /**< its layers on this rank, and the micro-batches that run through them */
    Optimizer *optimizer;          /**< with its state */
    GradScaler scaler;             /**< zeros except in fp16 */
    TokenSet *train, *test;        /**< test is NULL without evaluation */
    Sampler sampler, test_sampler; /**< of `train` and `test` */
    Batch **batch;                 /**< [micro-batches] their rows */
    BucketSet *buckets;            /**< of the model's gradients */
    const Replicas *replicas;      /**< how the replicas keep one model */
    Report *report;                /**< on rank 0 only */
    /** rows of the data in use; steps per epoch, in all, and done */
    int64_t rows, steps_an_epoch, steps, step;
    int64_t first_step;  /**< steps done before this run */
    bool interrupted;    /**< asked to end early */
    Path resumed;        /**< the checkpoint from which the run resumed, or "" */
    FILE *save_lock;     /**< of the SAVE folder, on rank 0 */
    bool save_made;      /**< did this run make the SAVE folder? */
    int64_t saved_step;  /**< the step of the last checkpoint, or -1 */
    int64_t local_batch; /**< rows per step on this replica */
    /** of each step; wait: the exposed part of the reduction */
    double *step_seconds, *wait_seconds;
    Sent sent;         /**< in all steps */
    double work;       /**< transformer_work() of the rows read by this replica, without padding */
    int passes;        /**< backward passes of the step so far */
    Tape *last_tape;   /**< of the last one, which completes the gradients */
    bool apart;        /**< with AVERAGE: the replicas' weights differ */
    bool check_is_due; /**< a comparison of CHECK waits until the replicas have the same weights */
    /** the rows (of a language model, the tokens) that this replica has trained on since all replicas
     *  last had equal weights */
    double rows_apart;
    Metrics metrics; /**< this rank's sums since trainer_take_metrics() */
    Metrics epoch;   /**< sums of the epoch so far; after its evaluation, the evaluation's sums */
};

/** The communication of this rank since the groups were made. */
Sent sent_so_far(const Mesh *mesh);

/** Opens the data, makes samplers and batch. Collective. Returns false with `problem`, on every
 *  rank, on bad input. */
bool trainer_open_data(Trainer *t, Problem *problem);

/** Makes model, stage and optimiser. The initial weights come from MODEL=PATH or follow from the
 *  seed. Collective. Returns false with `problem`, on every rank, if the stages do not run each
 *  block exactly once, or if VOCAB, MODEL=PATH or ALLREDUCE=ring cannot be used. */
bool trainer_build_model(Trainer *t, TrainConfig *config, Problem *problem);

/** Do the stages, whose blocks are `blocks` [stages], run each of the model's `layers` once, in order?
 *  @return false with `problem` if not */
bool stages_share_blocks(const Range *blocks, int stages, int layers, Problem *problem);

/** Makes the stage call back at each pass: to sum the metrics, and to begin the reduction of the
 *  gradients in the last backward pass of a step. */
void trainer_watch_stage(Trainer *t);

/** The sums over all rows since the last call, on every rank. Collective. */
Metrics trainer_take_metrics(Trainer *t);

/** Opens the report on rank 0 and prints the configuration. Collective. Returns false with
 *  `problem`, on every rank, if the metrics cannot be written. */
bool trainer_open_report(Trainer *t, Problem *problem);

/** Makes one step on `rows` [local_batch]: forward and backward in micro-batches, reduction,
 *  clipping, optimiser.
 *  @return the report of the step, with only rate, wait_seconds, gradient_norm, scale and left_out
 *  set */
StepReport trainer_step(Trainer *t, const int64_t *rows);

/** Call this after a step, or a batch of an evaluation: see stall_moved(). */
void trainer_moved(const Trainer *t);

/** Writes to `text` [HINT_SIZE] the hint for a run whose numbers are no longer finite; the hint
 *  names the last checkpoint, if there is one. @return text */
const char *hint_on_divergence(const Trainer *t, char *text);
enum { HINT_SIZE = sizeof((Problem){0}.hint) }; /**< of a hint, with its terminator */

/** Evaluates: the sums over all test rows, each once; incomplete if t->interrupted is set.
 *  Collective. */
Metrics trainer_evaluate(Trainer *t);

/** Frees everything that was opened, even if a function above failed half-way. */
void trainer_close(Trainer *t);

/* ---- norm_gradients.c: SP ------------------------------------------------------------------------------------- */

/** Lab 18 sums the gradients that are partial sums over tp: with SP, those of the norms. Call this
 *  once a step, after the last backward pass, which was on `tape`. Collective over the ranks that
 *  split the model. */
void sum_norms_over_tp(Model *model, Tape *tape);

/* ---- agree.c: comparisons between the ranks of a run ---------------------------------------------------- */

/** Did all ranks succeed? `good` is this rank's answer. Otherwise every rank gets the `problem` of
 *  the first rank that failed. Collective. */
bool agree(Group *group, bool good, Problem *problem);

/** Is x the same on all ranks of the group? Collective. */
bool is_same_over(Group *group, uint64_t x);

/** Do the kernels of all ranks run on devices of one type (see backend_device())? Collective.
 *  @return true if so; false with `problem` on every rank */
bool agree_on_device(Group *group, Problem *problem);

/** Compares checksums. Within each tp group, it compares the weights that every rank of the group
 *  holds in full; between the replicas, all weights. Collective over the world.
 *  @return false with `problem`, on every rank, naming the first parameter that differs */
bool weights_are_equal(Model *model, int64_t step, Problem *problem);

/** Warns on rank 0 if the ranks that split one model are on several nodes, because they communicate
 *  in every block. With `show`, also prints one line per rank. Collective over the world. */
void map_report(const Mesh *mesh, bool show);

/* ---- checkpoint_folders.c, checkpoint.c: SAVE, EVERY, RESUME ------------------------------------------- */

/** Call this first: can SAVE be written, and is there something to RESUME from? A resumed run
 *  continues as if it had never stopped, bit for bit in the same layout and up to rounding in
 *  another (with AVERAGE, this holds only with SGD). Sampler and dropout are keyed by seed and
 *  step, so a checkpoint has no random state: only weights, the optimiser's state, the loss scale,
 *  the epoch's sums and the step. The functions of this section, except checkpoint_describe(), are
 *  collective, and succeed or fail on all ranks with the same problem. */
bool checkpoint_prepare(Trainer *t, Problem *problem);

/** Reads weights and the optimiser's state and sets the step, if there is something to resume from.
 * The data must be open and the model built. Removes later steps from the metrics file. */
bool checkpoint_resume(Trainer *t, Problem *problem);

/** Prints where the run begins and where it saves. Rank 0 only. */
void checkpoint_describe(const Trainer *t);

/** Saves the state after the step just done, if EVERY or the end of the run (`last`) requires it.
 *  Fails, and keeps earlier checkpoints, if a number is not finite. */
bool checkpoint_save(Trainer *t, bool last, Problem *problem);

/* ---- stall.c: reports a run that makes no progress ----------------------------------------------------- */

/** Call this after a step or a batch of an evaluation. If the next one takes longer than `patience`
 *  seconds and ten times the longest so far, reports it on stderr, with the ranks of this machine
 *  that are stopped. Ranks other than 0 report it only if rank 0 is stopped. The run continues: it
 *  may just be slow. */
void stall_moved(int patience);

/** Call this when no more steps or batches follow. */
void stall_end(void);
