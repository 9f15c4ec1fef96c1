/** @file
 * TRACE=run.json: what each rank did when, and what it held meanwhile, in the format of Chrome's tracing that Perfetto opens.
 *
 * The spans (base/spans.h) are the spans: one follows the other, nothing lies between two. They are kept in memory that is there
 * before the first step, for a few steps after those that fill the pool and the caches, and sent to rank 0 when the run has ended.
 * The clocks of the ranks are set by a barrier. What a rank waited within an exchange is told as in profile.h: whoever of the group
 * spent least on it waited for nobody.
 */
#pragma once

#include "base/problem.h"
#include "train/trainer.h"

/** Sets the clocks, and listens to the spans of `steps` steps to come; of very few all are kept. Collective. */
void trace_open(const Mesh *mesh, const Pool *pool, int64_t steps);

/** Step `done` of this run (from 0) begins; spans count as its spans until trace_step_ends(). */
void trace_step(int64_t done);
/** The step that has begun ends: it is kept, if it was one to be kept and there was room for all of it. */
void trace_step_ends(void);

/** Puts together what all ranks kept, in the file `path` of rank 0: beside it first, then renamed. Collective. `first`
 *  steps were done before this run.
 *  @return false with `problem`, the same on every rank, where it cannot be written */
bool trace_write(const char *path, int64_t first, Problem *problem);

/** Gives back the memory; also where there was no trace. */
void trace_close(void);

/** Could a trace be written there? Nothing is left behind. Otherwise false with `problem`. */
bool trace_can_be_written(const char *path, Problem *problem);

/* ---- trace.c keeps the spans of one rank, trace_file.c writes the file of all ranks ---- */

enum {
    TRACED_STEPS = 10,      /**< that are kept, at most */
    TRACED_SPANS = 1 << 16, /**< of all of them together */
};

/** What a span is spent on. */
typedef enum SpanKind {
    SPAN_FORWARD,   /**< an operation of the forward pass */
    SPAN_BACKWARD,  /**< an operation of the backward pass */
    SPAN_TP,        /**< an exchange of the ranks that split a model */
    SPAN_DP,        /**< the reduction over the replicas, where a rank waits for it */
    SPAN_UNDER_WAY, /**< letting MPI move it, between two operations */
    SPAN_OPTIMISER, /**< clipping and the weights' step */
    SPAN_READING,   /**< the batch */
    SPAN_KINDS,     /**< how many there are */
} SpanKind;

/** A span, and when it was. */
typedef struct Span {
    const char *what;         /**< the span's name, a text that stays */
    SpanKind kind;            /**< in which row of the rank it is drawn */
    double begin, seconds;    /**< seconds since the ranks have set their clocks; how long */
    double waited;            /**< of `seconds`, its first part; 0 where that is not known */
    int64_t sent_tp, sent_dp; /**< bytes of this rank's share */
    int64_t held[CATEGORIES]; /**< bytes of tensors at its end */
} Span;

/** A step that was kept. */
typedef struct TracedStep {
    int64_t done;      /**< steps of this run before it */
    double begin, end; /**< seconds since the ranks have set their clocks */
    int spans;         /**< up to its end, from the first step's on */
} TracedStep;

/** Of this rank. */
typedef struct Trace {
    const Mesh *mesh;              /**< the caller's */
    const Pool *pool;              /**< whose use is noted; the caller's */
    Span *span;                    /**< [TRACED_SPANS], of which `spans` are filled */
    int spans, steps;              /**< kept so far */
    TracedStep step[TRACED_STEPS]; /**< the first `steps` are filled */
    int64_t warm_up;               /**< the first step that is kept */
    double zero, last;             /**< on the clock of this machine; the end of the last span */
    Sent sent;                     /**< until then */
    bool within;                   /**< a step that is kept */
    /** the ranks of a tp group, or of a dp group, made different numbers of exchanges: no waiting is known */
    bool unlike[2];
} Trace;

/** What this rank has kept, with what it waited for others. Collective. */
const Trace *trace_compared(void);
