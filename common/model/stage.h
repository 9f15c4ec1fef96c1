/** @file
 * A stage of a pipeline: a rank's layers of a transformer, and the micro-batches that are in
 * flight. Each micro-batch has a tape of its own, so several can wait for their backward pass.
 * (GPipe, arXiv:1811.06965; the names of the passes are Megatron-LM's.)
 */
#pragma once

#include "base/language.h"
#include "model/transformer.h"

/** One of the parts into which a batch is split for the pipeline. All of its tensors belong to its
 *  tape. */
typedef struct MicroBatch {
    Tape *tape;                  /**< its own */
    Tensor *ids, *mask, *labels; /**< [B,S], [B,S], [B]; after a masked model's
                                *   forward pass, labels are those of its logits */
    int64_t rows_of_a_step;      /**< the sum of the losses is divided by this */
    Tensor *input;  /**< the result of stage_embed() or stage_receive(), [B,S,H]; NULL before */
    Tensor *output; /**< the result of stage_run(); NULL before it and after the backward pass */
    Tensor *logits; /**< on the last stage, after the forward pass; otherwise NULL */
    Tensor *loss;   /**< [1] on the last stage, after the forward pass; NULL without labels */
    bool has_run_backward; /**< then its tensors have been released */
} MicroBatch;

/** Called with a stage and the micro-batch that passes through it. */
typedef void PassListener(void *context, const struct Stage *stage, int micro, bool backward);

/** The names of the spans of messages between stages, waiting included (base/spans.h). */
#define STAGE_SEND    N_("send to another stage")
#define STAGE_RECEIVE N_("receive from another stage") /**< see STAGE_SEND */

/** An observer of the passes of a stage. */
typedef struct StageWatch {
    PassListener *runs, *ran; /**< called when a pass begins, and when it has ended; may be NULL */
    PassListener *takes;      /**< called when a lab names an existing micro-batch; may be NULL */
    void *context;            /**< passed to all */
} StageWatch;

/** A send that was started and may not have been received yet. */
typedef struct StageSend {
    struct CommRequest *request; /**< the send */
    Buffer *buffer;              /**< the numbers, held until they are received */
    void *address;               /**< the line of the lab that started it, or NULL */
} StageSend;

/** The members of balise.h's Stage. */
struct Stage {
    Model *model;                   /**< the caller's */
    const Mesh *mesh;               /**< of the model */
    TransformerPart part;           /**< which layers it holds */
    const Transformer *transformer; /**< those layers; the model's */
    int hidden;                     /**< H */
    bool is_masked;                 /**< the head computes logits only where there are targets */
    bool sequence_parallel;         /**< stages exchange shards of the positions */
    int in_flight;                  /**< micro-batches that have run forward, but not backward */
    int most_in_flight;             /**< the largest value of `in_flight` so far */
    double loss_scale;  /**< the gradient of the loss, in fp16; 0 means 1. Set by the caller */
    StageWatch watch;   /**< observes each pass; set by the caller */
    StageSend *sends;   /**< [sent] the sends that stage_sends_finish() waits for */
    int sent;           /**< the number of these sends */
    void *finished;     /**< the line of the step's last stage_sends_finish(), or NULL */
    int micros;         /**< the number of micro-batches that the stage has room for */
    MicroBatch micro[]; /**< the micro-batches */
};

/** The blocks that stage_blocks() gives this rank's stage. Ends the run if they are not within
 *  0..blocks-1. */
Range own_stage_blocks(int blocks, const Mesh *mesh);
/** Makes this rank's stage: its layers of a transformer, made with the model's builder, and room
 *  for `micros` micro-batches, numbered from 0. The layers are the blocks of own_stage_blocks(),
 *  with the embedding on the first stage and the head on the last one. Ends the run if the blocks
 *  are not within 0..layers-1. The caller frees it with stage_free(), before the model. */
Stage *stage_new(Model *model, const TransformerConfig *config, int micros);
/** Frees the stage with its tapes. */
void stage_free(Stage *stage);

/** Ends the run if a send that a lab has started was not waited for. Call it after each function of
 *  a lab that sends; `function` is its name. */
void stage_must_have_sent(const Stage *stage, const char *function);

/** Begins micro-batch `micro` with the rows of `batch`, and releases all tensors of its last pass.
 *  Returns its tape, on which the caller makes the tensors for stage_fill(). */
Tape *stage_begin(Stage *stage, int micro, TapeBatch batch);
/** Sets the micro-batch's tokens ids [B,S], mask [B,S] and labels [B], all on its tape. The sum of
 *  its losses is divided by `rows_of_a_step`. If labels is NULL, there is no loss. */
void stage_fill(Stage *stage, int micro, Tensor *ids, Tensor *mask, Tensor *labels,
                int64_t rows_of_a_step);
