/* This rank's spans, and its waiting within them. */
#include "train/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "train/profile.h"

static Trace *kept; /* static because span listeners get no context */

static SpanKind kind_of(const Mesh *mesh, const char *what, bool backward, bool exchanged)
{
    if (!strcmp(what, "optimiser") || !strcmp(what, "clipping"))
        return SPAN_OPTIMISER;
    if (!strcmp(what, "reading the batch"))
        return SPAN_READING;
    if (!strcmp(what, STAGE_SEND) || !strcmp(what, STAGE_RECEIVE))
        return SPAN_PP;
    if (!strcmp(what, REDUCTION_UNDER_WAY))
        return SPAN_UNDER_WAY;
    if (mesh->dp_degree > 1 && (!strcmp(what, REDUCTION_ROWS) || !strcmp(what, REDUCTION_EXPOSED)))
        return SPAN_DP;
    if (exchanged)
        return SPAN_TP;
    return backward ? SPAN_BACKWARD : SPAN_FORWARD;
}

/* The micro-batch whose pass is running, recognised by the tape that the model uses. */
static int micro_of(const Stage *stage, const char *what, SpanKind kind)
{
    const Parameter *any = stage->model->parameters;
    const bool between = kind == SPAN_PP || kind == SPAN_OPTIMISER || kind == SPAN_READING ||
                         !strcmp(what, REDUCTION_EXPOSED);
    for (int i = 0; !between && any && i < stage->micros; i++)
        if (stage->micro[i].tape == any->value->tape)
            return i;
    return NO_MICRO;
}

static void hear(const char *what, bool backward, double seconds)
{
    Trace *t = kept;
    if (!t || !t->within)
        return;
    if (t->spans == TRACED_SPANS) { /* a step is kept as a whole or not at all */
        t->within = false;
        return;
    }
    const Mesh *mesh = t->mesh;
    const Sent sent = sent_so_far(mesh);
    const bool exchanged = mesh->tp_degree > 1 && sent.tp.calls > t->sent.tp.calls;
    const MemoryUse use = memory_use();
    const SpanKind kind = kind_of(mesh, what, backward, exchanged);
    const int micro = micro_of(t->stage, what, kind);
    Span *span = &t->span[t->spans++];
    *span = (Span){.what = what,
                   .kind = kind,
                   .micro = micro,
                   .backward = micro != NO_MICRO && t->stage->micro[micro].output,
                   .begin = t->last,
                   .seconds = seconds,
                   .sent_tp = sent.tp.bytes - t->sent.tp.bytes,
                   .sent_dp = sent.dp.bytes - t->sent.dp.bytes,
                   .sent_pp = sent.pp.bytes - t->sent.pp.bytes};
    memcpy(span->held, use.now, sizeof span->held);
    t->last += seconds;
    t->sent = sent;
}

void trace_open(const Stage *stage, const Pool *pool, int64_t steps)
{
    const Mesh *mesh = stage->mesh;
    kept = calloc(1, sizeof *kept);
    *kept = (Trace){
        .stage = stage, .mesh = mesh, .pool = pool, .warm_up = steps > WARM_UP ? WARM_UP : 0};
    kept->span = calloc(TRACED_SPANS, sizeof *kept->span);
    /* Touches the pages before a step is timed. */
    memset(kept->span, 1, TRACED_SPANS * sizeof *kept->span);
    spans_listen(hear);
    for (int i = 0; i < 3; i++) /* the first two barriers open connections */
        MPI_Barrier(group_comm(mesh->world));
    kept->zero = clock_now();
}

void trace_step(int64_t done)
{
    Trace *t = kept;
    t->within = done >= t->warm_up && t->steps < TRACED_STEPS && done - t->warm_up == t->steps;
    if (!t->within)
        return;
    t->sent = sent_so_far(t->mesh);
    spans_run(true);
    t->last = clock_now() - t->zero;
    t->step[t->steps] = (TracedStep){.done = done, .begin = t->last};
}

void trace_step_ends(void)
{
    Trace *t = kept;
    if (!t->within) {
        t->spans = t->steps ? t->step[t->steps - 1].spans : 0;
        return;
    }
    t->step[t->steps].end = t->last;
    t->step[t->steps++].spans = t->spans;
    t->within = false;
}

void trace_close(void)
{
    if (!kept)
        return;
    spans_unlisten(hear);
    free(kept->span);
    free(kept);
    kept = NULL;
}

/* ---- waiting -------------------------------------------------------------------------------------------- */

static void compare(Trace *t, SpanKind kind, Group *group)
{
    double *seconds = calloc(2 * (size_t)(t->spans + 1), sizeof *seconds),
           *waited = seconds + t->spans + 1;
    int count = 0;
    for (int i = 0; i < t->spans; i++)
        if (t->span[i].kind == kind)
            seconds[count++] = t->span[i].seconds;
    bool known = waiting_of(group, seconds, count, waited);
    t->unlike[kind == SPAN_DP] = !known;
    count = 0;
    for (int i = 0; known && i < t->spans; i++)
        if (t->span[i].kind == kind)
            t->span[i].waited = waited[count++];
    free(seconds);
}

/* Ranks may have had room for different numbers of steps. */
static void keep_common_steps(Trace *t)
{
    MPI_Allreduce(MPI_IN_PLACE, &t->steps, 1, MPI_INT, MPI_MIN, group_comm(t->mesh->world));
    t->spans = t->steps ? t->step[t->steps - 1].spans : 0;
}

const Trace *trace_compared(void)
{
    Trace *t = kept;
    keep_common_steps(t);
    if (t->mesh->tp_degree > 1)
        compare(t, SPAN_TP, mesh_tp_group(t->mesh));
    if (t->mesh->dp && t->mesh->dp_degree > 1)
        compare(t, SPAN_DP, t->mesh->dp);
    return t;
}
