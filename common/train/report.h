/** @file
 * What a run shows while it trains and at its end, and the metrics file. Rank 0 writes; the functions are
 * called on it alone.
 */
#pragma once

#include <stdio.h>

#include "base/spans.h"
#include "comm/comm.h"
#include "tensor/pool.h"
#include "train/config.h"

/** What this rank has sent: over the ranks that split a model (before balise 8 the world), over the replicas, and in all. */
typedef struct Sent {
    Counter tp, dp, all; /**< with the time spent in exchanges */
} Sent;

/** One step, as a line of the metrics file has it. */
typedef struct StepReport {
    int64_t step; /**< from 1 */
    int epoch;    /**< from 1 */
    /** means over the step's rows; the learning rate; of the step */
    double loss, accuracy, rate, seconds, tokens_per_second;
    Sent sent;            /**< in this step */
    double wait_seconds;  /**< the part of the reduction that the backward pass did not hide */
    double gradient_norm; /**< before clipping; negative where it was not computed */
    double scale;         /**< of the loss, in fp16 (see optim/optim.h); otherwise 0 */
    int64_t left_out;     /**< steps so far in which a gradient became infinite */
} StepReport;

/** One rank's row of the table at the end. */
typedef struct RankReport {
    double loss, accuracy;  /**< on the test set, or of the last epoch's training */
    int64_t parameters;     /**< held */
    PoolUse use;            /**< memory of tensors */
    Sent sent;              /**< in all steps */
    double step_seconds;    /**< median */
    double wait_seconds;    /**< of it the reduction that was not hidden; -1 with one replica */
    int64_t resident_bytes; /**< the most that the process had in memory, with libraries and MPI */
} RankReport;

/** What rank 0 writes to: the terminal and the metrics file. */
typedef struct Report Report;

/** Opens the metrics file where there is one: it is begun anew, or continued by a run that resumes. Returns
 * NULL with `problem` when it cannot be written.
 *  `first` steps were done before this run (0 unless it resumes), `steps` there will be at its end. */
Report *report_open(const TrainConfig *config, int64_t first, int64_t steps, Problem *problem);
/** Waits until the metrics so far are on the disk. */
void report_sync(Report *report);
/** Has every line of the metrics been written? Otherwise false with `problem`. */
bool report_is_complete(Report *report, const TrainConfig *config, Problem *problem);
/** Ends the progress bar, closes the metrics file and frees the report. */
void report_close(Report *report);

/** Prints what is trained on what: sizes, parameters, layout, backend. */
void report_configuration(const TrainConfig *config, int ranks, int64_t parameters, int64_t held,
                          int64_t rows, int64_t test_rows, int64_t steps);

/** A line in the metrics file, and the progress bar (on a terminal) or now and then a line. */
void report_step(Report *report, const StepReport *step);

/** The evaluation begins. */
void report_evaluation(Report *report, int64_t rows);

/** The evaluation after an epoch. */
void report_epoch(Report *report, int epoch, double loss, double accuracy, int64_t rows);

/** What rank 0's time went to in `steps` steps, a row each, and a line in the metrics file. */
void report_profile(Report *report, const SpanTotal *spans, int count, int64_t steps);

/** The table, a row a rank, and the metrics file's last line. */
void report_ranks(Report *report, const RankReport *ranks, int count, bool interrupted);

/** Drops what a run that goes on after `step` will write again: steps beyond it, later evaluations, summaries, and a
 * line that was cut short. The rest replaces the file at once. A missing file stays missing. */
bool metrics_keep(const char *path, int64_t step, int64_t steps_an_epoch, Problem *problem);
