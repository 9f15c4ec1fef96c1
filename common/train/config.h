/** @file
 * The settings of a run: the options of build/train, which make train passes on from its variables.
 */
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/transformer.h"
#include "optim/optim.h"

/** The order in which micro-batches run through a pipeline (lab 13). */
typedef enum Pipeline {
    ONE_F_ONE_B, /**< PipeDream-Flush (arXiv:2104.04473, section 2.2) */
    GPIPE,       /**< arXiv:1811.06965 */
} Pipeline;

/** The options of a run, each already checked. Strings belong to the arguments, which outlive
 *  the record. */
typedef struct TrainConfig {
    const char *data, *test, *vocabulary; /**< files; test is NULL for no evaluation */
    const char *metrics;                  /**< JSON Lines file, or NULL */
    const char *trace;                    /**< file for Chrome's JSON of some steps, or NULL */
    const char *cache;                    /**< folder of the token cache */
    /** ranks that split a layer, replicas, stages; train_config_check() computes those that are
     *  0 */
    int tp, dp, pp;
    int epochs, batch, seq, threads; /**< batch: 0 until it is computed; threads: per rank */
    int ranks;                       /**< the number of ranks started, or 0 if not given */
    int dry;                         /**< 1: only check the options, start no ranks */
    int rank;                        /**< make check: a rank to simulate, too, or -1 */
    bool gpu;                        /**< make check: as on a GPU */
    const char *counts;              /**< make check: a file of metrics, for tests, or NULL */
    int vocabulary_size;             /**< make check: in place of a tokenizer's; 0: not given */
    int labs;                        /**< the last lab in the program, or 0 if not given */
    int64_t samples, steps;          /**< rows of the data to use, steps in all: 0 for no limit */
    int64_t memory;                  /**< the most bytes of tensors per rank: 0 for no limit */
    uint64_t seed;                   /**< of initial values, the order of the rows, and dropout */
    Schedule schedule;               /**< LR, WARMUP, DECAY */
    int64_t print; /**< steps between lines with the loss; 0: a bar, or a line in two seconds */
    double clip;   /**< the largest allowed norm of the gradient: 0 for no limit */
    int64_t check; /**< steps between comparisons of weights that should be equal; 0: never */
    /** steps between averages of the replicas' weights; 0: the replicas average gradients */
    int64_t average;
    int zero;    /**< 1: the optimiser's state is sharded over the replicas (lab 17) */
    int map;     /**< print where each rank runs */
    int profile; /**< print where the time goes */
    int micro;   /**< micro-batches per replica and step */
    /** if not 0, this seed moves each initial weight up or down by one unit in the last place. The
     *  distance between such runs shows how much rounding alone can change the results (tests of
     *  layouts). */
    uint64_t perturb;
    int pack;    /**< a language model's rows: 1, windows over all documents; 0, a document each */
    bool masked; /**< TASK=mlm: pretrains a BERT on text */
    Precision amp;             /**< precision of matrix products; all other arithmetic is FP32 */
    Pipeline pipeline;         /**< SCHEDULE */
    int ring;                  /**< 1: ALLREDUCE=ring: lab 15 sums over the replicas */
    OptimizerConfig optimizer; /**< the optimiser and its settings */
    TransformerConfig model;   /**< the model's sizes; layers: 0 until it is computed */
    const char *chosen;        /**< MODEL as given, or NULL */
    const char *pretrained;    /**< PATH of the initial weights (MODEL=PATH or hf:PATH), or NULL */
    Path tokenizer;            /**< of `pretrained`: the one that it records, or itself */
    const char *save, *resume; /**< folders of checkpoints, or NULL */
    int64_t save_every;        /**< steps between checkpoints; 0: only at the end of the run */
} TrainConfig;

/** Fills `config` from the arguments. Returns false with `problem` on an unknown option or an
 * invalid value. Sizes of the vocabulary and the data are not known yet. */
bool train_config(TrainConfig *config, int argc, char **argv, Problem *problem);

/** Computes the degrees that were left out, and checks that they fit the ranks and the labs.
 *  train_config_check() calls it. */
bool train_config_grid(TrainConfig *config, int ranks, Problem *problem);

/** Computes the degrees that were left out. If LAYERS and BATCH_SIZE are not given, chooses them so
 *  that each stage has at least one layer, and all micro-batches have the same number of rows.
 *  Checks that ranks, labs, model and batch fit together, and that METRICS and TRACE can be
 *  written. Returns false with `problem` if not. */
bool train_config_check(TrainConfig *config, int ranks, Problem *problem);

/** Checks the same as train_config_check(), for config->ranks ranks, before any of them starts.
 *  Also checks that the data can be read. */
bool train_config_dry(TrainConfig *config, Problem *problem);
