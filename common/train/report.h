/** @file
 * The output of a run while it trains and at its end, and the metrics file. Only rank 0 calls these
 * functions.
 */
#pragma once

#include <stdio.h>

#include "base/replacement.h"
#include "base/spans.h"
#include "comm/comm.h"
#include "tensor/pool.h"
#include "train/config.h"

/** This rank's communication: over the ranks that split a model (before lab 8, the world), over the
 *  replicas, to other stages, and in total. */
typedef struct Sent {
    Counter tp, dp, pp, all; /**< with the time spent in communication */
} Sent;

/** One step, as in a line of the metrics file. */
typedef struct StepReport {
    int64_t step; /**< from 1 */
    int epoch;    /**< from 1 */
    /** loss and accuracy: means over the step's rows; rate: learning rate; seconds: time of the
     *  step. For a language model, the metrics file has the perplexity in place of the accuracy. */
    double loss, accuracy, rate, seconds, tokens_per_second;
    Sent sent;            /**< in this step */
    double wait_seconds;  /**< the part of the reduction that the backward pass did not hide */
    double gradient_norm; /**< before clipping; negative if not computed */
    double scale;         /**< the loss scale in fp16 (see optim/optim.h); otherwise 0 */
    int64_t left_out;     /**< steps skipped so far because a gradient was infinite */
} StepReport;

enum { SPLIT_AXES = 3 /**< over which ranks exchange something in a step: tp, dp, pp */ };

/** What one kind of work takes in a step of a dry run. */
typedef struct WorkOf {
    const char *what; /**< a span's name */
    bool backward;    /**< in the backward pass? */
    /** of the kernels; means if some steps have more than others */
    double multiply_adds, bytes;
    double calls[SPLIT_AXES][OPERATIONS]; /**< exchanges over each axis */
    double sent[SPLIT_AXES][OPERATIONS];  /**< bytes that the rank sends in them */
} WorkOf;

/** One rank's row in the final table. */
typedef struct RankReport {
    int rank;               /**< in the world */
    double loss, accuracy;  /**< on the test set or, without one, in training in the last epoch */
    int64_t parameters;     /**< number of parameters held */
    MemoryUse use;          /**< memory of tensors */
    Sent sent;              /**< in all steps */
    double step_seconds;    /**< median */
    double wait_seconds;    /**< exposed reduction, within step_seconds; -1 with one replica */
    int64_t resident_bytes; /**< the process's peak resident memory, with libraries and MPI */
    int stage;              /**< from 0 */
    Range blocks;           /**< its blocks */
    int in_flight; /**< the most micro-batches that waited for their backward pass at once */
    double idle;   /**< the share of the steps' time that went into messages between stages */
    double peak;   /**< FLOP/s of its share of the machine; 0: unknown */
    double multiply_adds; /**< of its products, counted in a dry run; otherwise 0 */
    const WorkOf *work;   /**< its kinds of work in a dry run; otherwise NULL */
    int kinds;            /**< how many these are */
} RankReport;

/** The work of a step, and its time. */
typedef struct StepCost {
    double tokens, work; /**< of all ranks; work: see transformer_work() */
    double seconds;      /**< median, on rank 0 */
    double peak;         /**< FLOP/s of all ranks together; 0: unknown */
} StepCost;

/** The outputs of rank 0: the terminal and the metrics file. */
typedef struct Report Report;

/** Opens the metrics file, if there is one: a run that resumes continues it, any other run
 * replaces it. Returns NULL with `problem` if it cannot be written. `first` is the number of steps
 * done before this run (0 unless it resumes), `steps` the number at its end. */
Report *report_open(const TrainConfig *config, int64_t first, int64_t steps, Problem *problem);
/** Waits until the metrics so far are on disk. */
void report_sync(Report *report);
/** Has every line of the metrics been written? Otherwise returns false with `problem`. */
bool report_is_complete(Report *report, const TrainConfig *config, Problem *problem);
/** Ends the progress bar, closes the metrics file and frees the report. */
void report_close(Report *report);

/** Prints the configuration: sizes, parameters, layout, data, backend. `held` is the number of
 *  parameters on the rank that holds the most. */
void report_configuration(const TrainConfig *config, int64_t parameters, int64_t held, int64_t rows,
                          int64_t test_rows, int64_t steps);

/** The first part of report_configuration(): the model, its layout, and what it keeps. */
void report_model(const TrainConfig *config, int64_t parameters, int64_t held);

/** Prints what the ranks of a dry run would hold, send and compute in a step, and writes a line of
 *  the metrics file. work: see StepCost. */
void report_dry_run(Report *report, const RankReport *ranks, int count, double work);

/** Writes a line of the metrics file, and updates the progress bar (without a terminal, prints a
 *  line now and then). */
void report_step(Report *report, const StepReport *step);

/** Call this when the evaluation begins. */
void report_evaluation(Report *report, int64_t rows);

/** Reports the evaluation after an epoch. */
void report_epoch(Report *report, int epoch, double loss, double accuracy, int64_t rows);

/** Prints where rank 0's time went in `steps` steps, one row per span, and writes a line of the
 *  metrics file. */
void report_profile(Report *report, const SpanTotal *spans, int count, int64_t steps);

/** Prints the final tables, with one row per rank, then the speed of the run, and writes the
 * metrics file's last line. The table of stages is printed only if there are several. `tokens` and
 *  `work` are per step. */
void report_ranks(Report *report, const RankReport *ranks, int count, double tokens, double work,
                  bool interrupted);

/** Prints the tables of report_ranks(). For a language model, the perplexity replaces the
 *  accuracy. The losses are those of the test set (`tested`) or of training. */
void report_tables(const RankReport *ranks, int count, bool is_language, bool tested);
/** Prints the tables of report_dry_run(). */
void report_dry_tables(const RankReport *ranks, int count);
/** Prints tokens and operations per second of `count` ranks, and the share of the peak (MFU) if it
 *  is known. */
void report_speed(const StepCost *step, int count);

/** A file of metrics, which may replace only an earlier file of metrics. */
extern const OutputKind metrics_kind;

/** Removes the lines that a run that resumes after `step` will write again: later steps and
 * evaluations, summaries, and a truncated line. Replaces the file atomically. A missing file stays
 * missing. Returns false with `problem` if the file cannot be replaced. */
bool metrics_keep(const char *path, int64_t step, int64_t steps_an_epoch, Problem *problem);
