/** @file
 * What trace.c (the laps of one rank) and trace_file.c (the file of all ranks) share.
 */
#ifndef BALISE_TRAIN_TRACE_PARTS_H
#define BALISE_TRAIN_TRACE_PARTS_H

#include "train/trace.h"

enum { TRACED_STEPS = 10, TRACED_SPANS = 1 << 16 };

/** What a span is spent on. */
typedef enum SpanKind {
    SPAN_FORWARD,
    SPAN_BACKWARD,
    SPAN_TP,        /**< an exchange of the ranks that split a model */
    SPAN_DP,        /**< the reduction over the replicas, where a rank waits for it */
    SPAN_UNDER_WAY, /**< letting MPI move it, between two operations */
    SPAN_OPTIMISER,
    SPAN_READING,
    SPAN_KINDS
} SpanKind;

typedef struct Span {
    const char *what;
    SpanKind kind;
    double begin, seconds;    /**< since the ranks have set their clocks */
    double waited;            /**< of `seconds`, its first part; 0 where that is not known */
    int64_t sent_tp, sent_dp; /**< bytes of this rank's share */
    int64_t held[CATEGORIES]; /**< bytes of tensors at its end */
} Span;

typedef struct TracedStep {
    int64_t done; /**< steps of this run before it */
    double begin, end;
    int spans; /**< up to its end, from the first step's on */
} TracedStep;

/** Of this rank. */
typedef struct Trace {
    const Mesh *mesh;
    const Pool *pool;
    Span *span;
    int spans, steps;
    TracedStep step[TRACED_STEPS];
    int64_t warm_up;
    double zero, last; /**< on the clock of this machine; the end of the last span */
    Counter tp, dp;    /**< sent until then */
    bool within;       /**< a step that is kept */
    bool unlike
        [2]; /**< the ranks of a tp group, or of a dp group, made different numbers of exchanges: no waiting is known */
} Trace;

/** Takes what each rank waited out of its exchanges. Collective. */
void trace_compare(Trace *trace);

/** The file, on rank 0. Collective. */
bool trace_file_write(const Trace *trace, const char *path, int64_t first, Problem *problem);

#endif
