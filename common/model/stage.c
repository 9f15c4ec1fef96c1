/* A stage of a pipeline: its layers, and the passes of its micro-batches. */
#include "model/stage.h"

#include <stdlib.h>
#include <string.h>

#include "autograd/operations.h"
#include "base/run.h"
#include "base/spans.h"
#include "comm/comm.h"
#include "mesh/mesh.h"

Range own_stage_blocks(int blocks, const Mesh *mesh)
{
    const Range own = stage_blocks(blocks, mesh);
    if (own.begin < 0 || own.begin > own.end || own.end > blocks)
        misuse(
            "begin is the first block of this stage, and end is one past its last block",
            "stage_blocks(%d, mesh) returned begin %lld and end %lld in stage %d of %d, but 0 <= begin "
            "<= end <= %d must hold",
            blocks, (long long)own.begin, (long long)own.end, mesh->pp_rank, mesh->pp_degree,
            blocks);
    return own;
}

static TransformerPart part_of_stage(const TransformerConfig *config, const Mesh *mesh)
{
    return (TransformerPart){mesh->pp_rank == 0, own_stage_blocks(config->layers, mesh),
                             mesh->pp_rank + 1 == mesh->pp_degree};
}

Stage *stage_new(Model *model, const TransformerConfig *config, int micros)
{
    const TransformerPart part = part_of_stage(config, model->mesh);
    const Transformer *transformer =
        transformer_new(model->builder, config, part); /* may end the run */
    Stage *stage = calloc(1, sizeof *stage + (size_t)micros * sizeof *stage->micro);
    *stage = (Stage){.model = model,
                     .mesh = model->mesh,
                     .part = part,
                     .transformer = transformer,
                     .hidden = config->hidden,
                     .is_masked = config->architecture->is_masked,
                     .sequence_parallel = config->sequence_parallel,
                     .micros = micros};
    for (int i = 0; i < micros; i++)
        stage->micro[i].tape = tape_new(model->pool, model->mesh);
    return stage;
}

void stage_free(Stage *stage)
{
    for (int i = 0; i < stage->micros; i++)
        tape_free(stage->micro[i].tape);
    free(stage->sends);
    free(stage);
}

Tape *stage_begin(Stage *stage, int micro, TapeBatch batch)
{
    MicroBatch *m = &stage->micro[micro];
    tape_reset(m->tape, batch);
    *m = (MicroBatch){.tape = m->tape};
    stage->finished = NULL;
    return m->tape;
}

void stage_fill(Stage *stage, int micro, Tensor *ids, Tensor *mask, Tensor *labels,
                int64_t rows_of_a_step)
{
    MicroBatch *m = &stage->micro[micro];
    m->ids = ids;
    m->mask = mask;
    m->labels = labels;
    m->rows_of_a_step = rows_of_a_step;
}

void stage_must_have_sent(const Stage *stage, const char *function)
{
    if (stage->sent > 0 && stage->finished)
        misuse_since(
            stage->finished,
            "call stage_sends_finish(stage) once, after the last backward_step: it waits "
            "for the sends that were started before it",
            "%s returned without waiting for %d of its sends, which started after it called "
            "stage_sends_finish",
            function, stage->sent);
    if (stage->sent > 0)
        misuse_since(stage->sends[0].address,
                     "end each step with stage_sends_finish(stage): until then a tensor that is "
                     "being sent must stay as it is",
                     "%s returned without waiting for %d of its sends; this is the first", function,
                     stage->sent);
}

/* ---- functions that a lab calls ------------------------------------------------------------------------------ */

static bool have_all_run_forward(const Stage *stage)
{
    for (int i = 0; i < stage->micros; i++)
        if (!stage->micro[i].output && !stage->micro[i].has_run_backward)
            return false;
    return true;
}

static MicroBatch *micro_of(Stage *stage, int micro, const char *function)
{
    if (!stage)
        misuse("pass on the stage that your function was given", "%s: the stage is NULL", function);
    if (micro < 0)
        misuse("micro-batches are numbered from 0, and stages from 0 to pp_degree - 1; tp_degree "
               "and dp_degree count other ranks",
               "%s: there is no micro-batch %d, only 0 to %d", function, micro, stage->micros - 1);
    if (micro >= stage->micros)
        misuse(have_all_run_forward(stage)
                   ? N_("all micro-batches have run forward: each loop over them ends at "
                        "stage_micros(stage), even where a stage runs ahead")
                   : N_("micro-batches are numbered from 0"),
               "%s: there is no micro-batch %d, only 0 to %d", function, micro, stage->micros - 1);
    return &stage->micro[micro];
}

/* The micro-batch that a pass names. The observer sees it before other checks. */
static MicroBatch *micro_of_pass(Stage *stage, int micro, const char *function, bool backward)
{
    MicroBatch *m = micro_of(stage, micro, function);
    if (stage->watch.takes)
        stage->watch.takes(stage->watch.context, stage, micro, backward);
    return m;
}

/* The shape of a stage's input and output: with sequence parallelism, a shard of the positions. */
static Shape activation_shape(const Stage *stage, const MicroBatch *m)
{
    const int64_t ranks = stage->sequence_parallel ? stage->mesh->tp_degree : 1;
    return SHAPE(m->ids->shape.size[0], m->ids->shape.size[1] / ranks, stage->hidden);
}

static void must_have_shape(const char *function, const char *what, const Tensor *x, Shape shape)
{
    if (!shape_equal(x->shape, shape))
        misuse("stages exchange tensors of shape [B,S,H]", "%s: %s is %s, expected %s", function,
               what, SHAPE_TEXT(x->shape), SHAPE_TEXT(shape));
}

Tensor *stage_embed(Stage *stage, int micro)
{
    MicroBatch *m = micro_of_pass(stage, micro, "stage_embed", false);
    if (!stage->part.embedding)
        misuse("the first stage embeds the tokens; this one receives from the stage before it",
               "stage_embed: stage %d does not hold the embedding", stage->mesh->pp_rank);
    if (m->input)
        misuse("a micro-batch runs forward once, then backward: run each of 0 to "
               "stage_micros(stage) - 1 once, and pass on the `micro` that forward_step is given",
               "stage_embed: micro-batch %d has been embedded already", micro);
    model_use_tape(stage->model, m->tape);
    backend_range("forward");
    m->input = transformer_embed(stage->transformer, m->ids, stage->mesh);
    backend_range_end();
    return m->input;
}

static void begin_pass(const Stage *stage, int micro, bool backward)
{
    model_use_tape(stage->model, stage->micro[micro].tape);
    if (stage->watch.runs)
        stage->watch.runs(stage->watch.context, stage, micro, backward);
    backend_range(backward ? "backward" : "forward");
}

static void end_pass(Stage *stage, int micro, bool backward)
{
    backend_range_end();
    if (stage->micro[micro].tape->recording)
        stage->in_flight += backward ? -1 : 1;
    if (stage->in_flight > stage->most_in_flight)
        stage->most_in_flight = stage->in_flight;
    if (stage->watch.ran)
        stage->watch.ran(stage->watch.context, stage, micro, backward);
}

Tensor *stage_run(Stage *stage, int micro, Tensor *x)
{
    MicroBatch *m = micro_of_pass(stage, micro, "stage_run", false);
    if (!x)
        misuse("x is what stage_embed or stage_receive returned", "stage_run: x is NULL");
    must_not_be_ids("stage_run", x);
    must_have_shape("stage_run", "x", x, activation_shape(stage, m));
    if (m->output)
        misuse("a micro-batch runs forward once, then backward",
               "stage_run: micro-batch %d has run forward already", micro);
    if (x->tape != m->tape)
        misuse("pass the x that stage_receive or stage_embed returned for this micro-batch",
               "stage_run: x does not belong to micro-batch %d", micro);
    begin_pass(stage, micro, false);
    Tensor *y = transformer_run_blocks(stage->transformer, x, m->mask, stage->mesh);
    if (stage->part.head) {
        if (stage->is_masked && m->labels)
            y = rows_with_targets(y, &m->labels);
        y = m->logits = transformer_head(stage->transformer, y, stage->mesh);
        if (m->labels)
            y = m->loss = transformer_loss(stage->transformer, m->logits, m->labels,
                                           m->rows_of_a_step, stage->mesh);
    }
    m->output = y;
    end_pass(stage, micro, false);
    return y;
}

/* The gradient of the loss; NULL means 1. */
static Tensor *gradient_of_loss(const Stage *stage, const MicroBatch *m)
{
    const real scale = (real)stage->loss_scale;
    return scale > 0 ? tape_reals(m->tape, SHAPE(1), whole(), &scale, false) : NULL;
}

/* Checks dy. The last stage begins the backward pass with its loss, and each other stage with the
 * gradient that the next one sends. */
static void must_be_gradient_of(const Stage *stage, const MicroBatch *m, const Tensor *dy)
{
    if (stage->part.head && dy)
        misuse("pass NULL: on the last stage, the backward pass begins with the loss, whose "
               "gradient is 1",
               "stage_run_backward: dy must be NULL on the last stage");
    if (!stage->part.head && !dy)
        misuse("only the last stage begins with NULL; receive the gradient from the next stage",
               "stage_run_backward: dy is NULL in stage %d of %d", stage->mesh->pp_rank,
               stage->mesh->pp_degree);
    if (dy)
        must_have_shape("stage_run_backward", "dy", dy, m->output->shape);
}

/* Checks that a backward pass of this micro-batch may begin. */
static void must_have_run(const MicroBatch *m, int micro, const char *function, const char *hint)
{
    if (!m->output)
        misuse(hint,
               m->has_run_backward ? N_("%s: micro-batch %d has run backward already")
                                   : N_("%s: micro-batch %d has not run forward"),
               function, micro);
}

Tensor *stage_run_backward(Stage *stage, int micro, Tensor *dy)
{
    MicroBatch *m = micro_of_pass(stage, micro, "stage_run_backward", true);
    must_have_run(
        m, micro, "stage_run_backward",
        N_("each backward pass follows a forward pass of its micro-batch: pass on the `micro` that backward_step is given"));
    if (!m->tape->recording)
        misuse("an evaluation calls forward_step alone: run backward in backward_step",
               "stage_run_backward: an evaluation has no backward pass");
    must_be_gradient_of(stage, m, dy);
    begin_pass(stage, micro, true);
    tape_backward(m->tape, m->output, stage->part.head ? gradient_of_loss(stage, m) : dy);
    m->output = NULL;
    m->has_run_backward = true;
    if (!stage->part.embedding && (!m->input || !m->input->gradient))
        misuse("pass stage_run the tensor that stage_receive returned: a copy of it "
               "is not on the tape",
               "stage_run_backward: no gradient reached the x that stage %d received",
               stage->mesh->pp_rank);
    Tensor *dx = stage->part.embedding ? NULL : m->input->gradient;
    tape_release_all(m->tape, dx, m->loss); /* other micro-batches need the memory */
    end_pass(stage, micro, true);
    return dx;
}

static void must_be_other_stage(const Stage *stage, const char *function, int other)
{
    const Mesh *mesh = stage->mesh;
    const bool gradient = !strcmp(function, "stage_receive_gradient"),
               input = !strcmp(function, "stage_receive");
    if (mesh->pp_degree == 1)
        misuse(
            "when mesh->pp_degree is 1, the stage is both first and last: it neither sends nor receives",
            "%s: there is only one stage, so there is no other stage to exchange with", function);
    if (other < 0 || other >= mesh->pp_degree)
        misuse(
            gradient && other == -1
                ? N_("a gradient comes from the stage after this one, mesh->pp_rank + 1")
            : input && other == mesh->pp_degree
                ? N_("x comes from the stage before this one, mesh->pp_rank - 1")
            : mesh->pp_rank == 0 && other == -1
                ? N_("the first stage neither receives an input nor sends a gradient: test mesh->pp_rank == 0, since several ranks of the world may be in it")
            : mesh->pp_rank == mesh->pp_degree - 1 && other == mesh->pp_degree
                ? N_("the last stage neither sends its output nor receives a gradient: test mesh->pp_rank == mesh->pp_degree - 1, since several ranks of the world may be in it")
                : N_("the stage before this one is mesh->pp_rank - 1 (the first has none), the next is mesh->pp_rank + 1 (the last has none)"),
            "%s was called by stage %d: there is no stage %d, only 0 to %d", function,
            mesh->pp_rank, other, mesh->pp_degree - 1);
    if (other == mesh->pp_rank)
        misuse(
            "exchange with the previous stage, mesh->pp_rank - 1, or with the next, mesh->pp_rank "
            "+ 1",
            "%s: stage %d cannot exchange with itself", function, other);
}

int stage_micros(const Stage *stage)
{
    if (!stage)
        misuse("pass on the stage that your function was given", "stage_micros: the stage is NULL");
    return stage->micros;
}

/* Checks the arguments of a send. Returns the numbers to send. */
static const real *to_send(Stage *stage, Tensor *x, int to, const char *function)
{
    micro_of(stage, 0, function);
    if (!x)
        misuse(
            "send what stage_run or stage_run_backward returned; on the first stage stage_run_backward returns NULL",
            "%s: x is NULL", function);
    must_not_be_ids(function, x);
    must_be_other_stage(stage, function, to);
    if (!x->buffer && !x->summing && !can_be_computed(x))
        misuse(
            to > stage->mesh->pp_rank
                ? N_("send what stage_run returned at once: the backward pass of its micro-batch "
                     "releases it")
                : N_("send what stage_run_backward returned: the gradient that this stage "
                     "received is not the gradient of its input"),
            "%s: x was released by stage_run_backward, which keeps only its result", function);
    return reals(ready(x));
}

static void send_blocking(Stage *stage, Tensor *x, int to, const char *function)
{
    const real *numbers = to_send(stage, x, to, function);
    comm_send(stage->mesh->pp, numbers, tensor_count(x), to);
    span_end(STAGE_SEND, false);
}

/* Lab 12 uses this one; lab 13 replaces it. */
__attribute__((weak)) void stage_send(Stage *stage, Tensor *x, int to)
{
    send_blocking(stage, x, to, "stage_send");
}

void stage_send_blocking(Stage *stage, Tensor *x, int to)
{
    send_blocking(stage, x, to, "stage_send_blocking");
}

void stage_send_start(Stage *stage, Tensor *x, int to)
{
    const real *numbers = to_send(stage, x, to, "stage_send_start");
    stage->sends = realloc(stage->sends, (size_t)(stage->sent + 1) * sizeof *stage->sends);
    CommRequest *request = comm_send_start(stage->mesh->pp, numbers, tensor_count(x), to);
    span_end(STAGE_SEND, false);
    stage->sends[stage->sent++] = (StageSend){request, buffer_hold(x->buffer), callsite()};
}

void stage_sends_finish(Stage *stage)
{
    micro_of(stage, 0, "stage_sends_finish");
    stage->finished = callsite();
    if (stage->sent == 0)
        return;
    for (int i = 0; i < stage->sent; i++) {
        comm_wait(stage->sends[i].request);
        buffer_release(stage->sends[i].buffer);
    }
    stage->sent = 0;
    span_end(STAGE_SEND, false);
}

static Tensor *received(Stage *stage, MicroBatch *m, const char *function, int from, bool input)
{
    must_be_other_stage(stage, function, from);
    const bool is_shard = stage->sequence_parallel && stage->mesh->tp_degree > 1;
    Tensor *x =
        tape_tensor(m->tape, REAL, activation_shape(stage, m), is_shard ? shard(1) : whole());
    comm_receive(stage->mesh->pp, reals(x), tensor_count(x), from);
    span_end(STAGE_RECEIVE, false);
    x->needs_gradient = input;
    return x;
}

Tensor *stage_receive(Stage *stage, int micro, int from)
{
    MicroBatch *m = micro_of_pass(stage, micro, "stage_receive", false);
    if (m->input)
        misuse("a micro-batch is received once: pass on the `micro` that forward_step is given; "
               "stage_receive_gradient receives the gradient of what this stage has sent",
               "stage_receive: micro-batch %d has its input already", micro);
    return m->input = received(stage, m, "stage_receive", from, true);
}

Tensor *stage_receive_gradient(Stage *stage, int micro, int from)
{
    MicroBatch *m = micro_of_pass(stage, micro, "stage_receive_gradient", true);
    must_have_run(
        m, micro, "stage_receive_gradient",
        N_("each micro-batch runs backward once, after its forward pass: pass on the `micro` that backward_step is given; stage_receive receives the input of this stage"));
    return received(stage, m, "stage_receive_gradient", from, false);
}
