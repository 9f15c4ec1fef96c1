/** @file
 * A stage of a pipeline: what a rank holds of a transformer, and the micro-batches that are under way in it. Each micro-batch has a
 * tape of its own, so that several can wait for their backward pass. (GPipe, arXiv:1811.06965; the names of the passes are
 * Megatron-LM's.)
 */
#pragma once

#include "base/language.h"
#include "model/transformer.h"

/** One of the parts of a batch that go through the pipeline one after the other. All tensors belong to its tape. */
typedef struct MicroBatch {
    Tape *tape;                  /**< its own */
    Tensor *ids, *mask, *labels; /**< [B,S], [B,S], [B]; after a masked model's
                                *   forward pass, labels are those of its logits */
    int64_t rows_of_a_step;      /**< divides the sum of its losses */
    Tensor *input;  /**< what stage_embed() or stage_receive() returned, [B,S,H]; NULL before */
    Tensor *output; /**< what it has returned; NULL before it, and again after the backward pass */
    Tensor *logits; /**< on the last stage, after the forward pass, [B,classes]; else NULL */
    Tensor *loss;   /**< the same, [1] */
} MicroBatch;

/** Called with a stage and the micro-batch that passes through it. */
typedef void PassListener(void *context, const struct Stage *stage, int micro, bool backward);

/** The names of the spans of messages between stages, waiting included (base/spans.h). */
#define STAGE_SEND    N_("send to another stage")
#define STAGE_RECEIVE N_("receive from another stage") /**< see STAGE_SEND */

/** An observer of the passes of a stage. */
typedef struct StageWatch {
    PassListener *runs, *ran; /**< called when a pass begins, and when it has ended; may be NULL */
    void *context;            /**< passed to both */
} StageWatch;

/** A send that was started and may not have been received yet. */
typedef struct StageSend {
    struct CommRequest *request; /**< the send */
    Buffer *buffer;              /**< the numbers, held until they are received */
    void *address;               /**< the line of the lab that started it, or NULL */
} StageSend;

/** What is behind the Stage of balise.h. */
struct Stage {
    Model *model;                   /**< the caller's */
    const Mesh *mesh;               /**< of the model */
    TransformerPart part;           /**< which layers it holds */
    const Transformer *transformer; /**< those layers; the model's */
    int hidden;                     /**< H */
    bool is_masked;                 /**< the head computes logits only where there are targets */
    bool sequence_parallel;         /**< what passes between stages is a shard of the positions */
    int alive;                      /**< how many have run forward, but not yet backward */
    int most_alive;                 /**< the most that have been alive at a time */
    double loss_scale;  /**< the gradient of the loss, for fp16; 0 for 1. The caller's to set */
    StageWatch watch;   /**< observes each pass; the caller's to set */
    StageSend *sends;   /**< [sent] those that stage_sends_finish() waits for */
    int sent;           /**< their number */
    void *finished;     /**< the line of the lab that last called it in this step, or NULL */
    int micros;         /**< how many micro-batches it has room for */
    MicroBatch micro[]; /**< the micro-batches */
};

/** The blocks that stage_blocks() gives this rank's stage. Ends the run if they are not within 0..blocks-1. */
Range own_stage_blocks(int blocks, const Mesh *mesh);
/** Makes this rank's layers of a transformer with the model's builder: the blocks of own_stage_blocks(), in the first stage also
 *  the embedding, in the last one also the head. It has room for `micros` micro-batches, from 0. Ends the run if the blocks
 *  are not within 0..layers-1. Free it before the model. */
Stage *stage_new(Model *model, const TransformerConfig *config, int micros);
/** Frees the stage with its tapes. */
void stage_free(Stage *stage);

/** Ends the run if a send that `function`, the last one called, has started was not waited for. Call it after each function of a lab
 *  that sends. */
void stage_must_have_sent(const Stage *stage, const char *function);

/** Begins micro-batch `micro`, whose rows are `batch`, and drops what is left of its last pass. Returns its tape, for the tensors of
 *  stage_fill(). */
Tape *stage_begin(Stage *stage, int micro, TapeBatch batch);
/** Its tokens ids [B,S], mask [B,S] and labels [B], all of its tape; `rows_of_a_step` divides the sum of its losses.
 *  Without labels, which may be NULL, there is no loss. */
void stage_fill(Stage *stage, int micro, Tensor *ids, Tensor *mask, Tensor *labels,
                int64_t rows_of_a_step);
