/** @file
 * What a run is told: the options of build/train, which make train passes on from its variables.
 */
#pragma once

#include "model/bert.h"
#include "optim/optim.h"

/** The options of a run, each checked by itself. Texts are the arguments', which outlive it. */
typedef struct TrainConfig {
    const char *data, *test, *vocabulary; /**< files; test may be NULL: no evaluation */
    const char *metrics;                  /**< JSON Lines file, or NULL */
    const char *trace;                    /**< Chrome's JSON of some steps, or NULL */
    const char *cache;                    /**< folder of the token cache */
    int tp, epochs, batch, seq, threads;  /**< threads: of a rank */
    int ranks;                            /**< that were started, or 0: not said */
    int dry;                              /**< 1: only look at the options, start no ranks */
    int64_t samples, steps; /**< rows used of the data, steps in all: 0 for no limit */
    int64_t memory;         /**< bytes of tensors a rank may hold: 0 for no limit */
    uint64_t seed;          /**< of initial values, the order of the rows, and dropout */
    Schedule schedule;      /**< LR, WARMUP, DECAY */
    double clip;            /**< the most that the norm of the gradient may be: 0 for no limit */
    int64_t check;          /**< every so many steps, are weights equal that should be? 0: never */
    int map;                /**< print who sits where */
    int profile;            /**< print where the time goes */
    int accumulate;         /**< micro-batches a step */
    /** not 0: initial weights are moved by one unit in the last place, up or down by this seed. How far such
     *  runs drift apart is the measure of what rounding may do (tests of layouts). */
    uint64_t perturb;
    Precision amp;             /**< of matrix products; all else is FP32 */
    OptimizerConfig optimizer; /**< which one, and its numbers */
    BertConfig bert;           /**< the model's sizes */
    const char *save, *resume; /**< folders of checkpoints, or NULL */
    int64_t save_every;        /**< steps between checkpoints; 0: only where the run ends */
} TrainConfig;

/** Fills `config` from the arguments. Returns false with `problem` on an unknown option or an impossible
 * value. Sizes of the vocabulary and the data are not known yet. */
bool train_config(TrainConfig *config, int argc, char **argv, Problem *problem);

/** Do ranks, model and batch fit, and can the metrics be written? Otherwise false with `problem`. */
bool train_config_check(const TrainConfig *config, int ranks, Problem *problem);

/** The same before any rank is started, for config->ranks of them; and can the data be read? */
bool train_config_dry(const TrainConfig *config, Problem *problem);
