/** @file
 * What trace.c (the spans of one rank) and trace_file.c (the file of all ranks) share.
 */
#pragma once

#include "train/trace.h"

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
    Counter tp, dp;                /**< sent until then */
    bool within;                   /**< a step that is kept */
    bool unlike
        [2]; /**< the ranks of a tp group, or of a dp group, made different numbers of exchanges: no waiting is known */
} Trace;

/** Takes what each rank waited out of its exchanges. Collective. */
void trace_compare(Trace *trace);

/** The file, on rank 0. Collective. */
bool trace_file_write(const Trace *trace, const char *path, int64_t first, Problem *problem);
