/** @file
 * TRACE=run.json: the work of each rank over time, and the memory that it holds, in Chrome's trace
 * format, which Perfetto opens.
 *
 * The spans come from base/spans.h: they follow each other without gaps. They are kept for a few
 * steps after the warm-up, in memory allocated before the first step, and sent to rank 0 at the end
 * of the run. The ranks' clocks start at a barrier. Waiting within an exchange is computed as in
 * profile.h: the rank of the group with the shortest time did not wait.
 */
#pragma once

#include "base/problem.h"
#include "train/trainer.h"

/** Sets the clocks, and listens to the spans of the next `steps` steps of this stage. Skips the
 *  warm-up steps unless there are no others. Collective. */
void trace_open(const Stage *stage, const Pool *pool, int64_t steps);

/** Call this when step `done` of this run (from 0) begins. Spans belong to this step until
 *  trace_step_ends(). */
void trace_step(int64_t done);
/** Ends the current step. Keeps it if it is one of the steps to keep, and all of its spans fit. */
void trace_step_ends(void);

/** Collects the steps that all ranks have kept, and writes them to `path` on rank 0, atomically.
 *  Collective. `first` steps were done before this run.
 *  @return false with `problem`, the same on every rank, if it cannot be written */
bool trace_write(const char *path, int64_t first, Problem *problem);

/** Frees the memory. Allowed without a trace. */
void trace_close(void);

/** Can a trace be written to this path? Leaves nothing behind. Otherwise returns false with
 *  `problem`. */
bool trace_can_be_written(const char *path, Problem *problem);

/* ---- trace.c keeps the spans of one rank, trace_file.c writes the file of all ranks ---- */

enum {
    TRACED_STEPS = 10,      /**< the most steps kept */
    TRACED_SPANS = 1 << 16, /**< the most spans, over all steps */
    NO_MICRO = -1,          /**< the span is outside of all micro-batches' passes */
};

/** The kind of work of a span. */
typedef enum SpanKind {
    SPAN_FORWARD,   /**< an operation of the forward pass */
    SPAN_BACKWARD,  /**< an operation of the backward pass */
    SPAN_TP,        /**< communication of the ranks that split a model */
    SPAN_PP,        /**< messages between stages, waiting included */
    SPAN_DP,        /**< the reduction over the replicas, while a rank waits for it */
    SPAN_UNDER_WAY, /**< letting MPI progress the reduction, between two operations */
    SPAN_OPTIMISER, /**< clipping and the optimiser's step */
    SPAN_READING,   /**< reading the batch */
    SPAN_KINDS,     /**< the number of kinds */
} SpanKind;

/** A span with its time. */
typedef struct Span {
    const char *what;      /**< its name, a string that stays valid */
    SpanKind kind;         /**< its category in the file */
    int micro;             /**< the micro-batch that its pass computes, or NO_MICRO */
    bool backward;         /**< of a backward pass, which may run operations forward again */
    double begin, seconds; /**< seconds since the clocks were set; duration */
    double waited;         /**< the first part of `seconds`, spent waiting; 0 if unknown */
    int64_t sent_tp, sent_dp, sent_pp; /**< bytes sent by this rank */
    int64_t held[CATEGORIES];          /**< bytes of tensors at its end */
} Span;

/** A kept step. */
typedef struct TracedStep {
    int64_t done;      /**< steps of this run before it */
    double begin, end; /**< seconds since the clocks were set */
    int spans;         /**< number of spans up to its end, from the first step on */
} TracedStep;

/** The trace of this rank. */
typedef struct Trace {
    const Stage *stage;            /**< the caller's */
    const Mesh *mesh;              /**< the stage's */
    const Pool *pool;              /**< the pool whose use is recorded; the caller's */
    Span *span;                    /**< [TRACED_SPANS], the first `spans` filled */
    int spans, steps;              /**< number kept so far */
    TracedStep step[TRACED_STEPS]; /**< the first `steps` are filled */
    int64_t warm_up;               /**< the first step to keep */
    double zero, last;             /**< time 0 on this machine's clock; the end of the last span */
    Sent sent;                     /**< communication up to `last` */
    bool within;                   /**< inside a step that is kept */
    /** the ranks of a tp group, or of a dp group, made different numbers of exchanges, so waiting
     *  is unknown */
    bool unlike[2];
} Trace;

/** Returns this rank's trace, including the time that it waited. Collective. */
const Trace *trace_compared(void);
