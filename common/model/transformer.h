/** @file
 * A transformer: an embedding, N blocks one after the other, and a head. The architecture
 * determines these parts: BERT, GPT-2 or LLaMA. All are assembled from the functions of the labs:
 * the serial ones, the solutions, or the student's.
 */
#pragma once

#include "model/model.h"

/** The kinds of parts that a transformer is made of; see below. */
typedef struct Architecture Architecture;

/** The parts that a backward pass computes again, with lab 19. */
typedef enum Recompute {
    RECOMPUTE_NOTHING,   /**< none: the forward pass keeps everything that backward reads */
    RECOMPUTE_BLOCKS,    /**< each block: the forward pass keeps only its input */
    RECOMPUTE_ATTENTION, /**< the attention of each block, with its linear layers */
} Recompute;

/** The sizes and other properties of a transformer. */
typedef struct TransformerConfig {
    const Architecture *architecture;      /**< which one; not NULL */
    int vocabulary, hidden, layers, heads; /**< V, H, blocks, A */
    int classes;                           /**< of a classifier; 0 in a language model */
    int positions;  /**< rows of learned positions, 0 for none; in a LLaMA, the longest sequence */
    double dropout; /**< probability, in [0, 1) */
    int kv_heads;   /**< LLaMA: heads of keys and values, which divide `heads` */
    int inner;      /**< width between feed-forward layers; the labs' BERT ignores it and has 4 H */
    double epsilon; /**< of the norms; the labs' BERT ignores it and has 1e-5 */
    int token_types; /**< the published BERT: rows of its table of token types; it uses row 0. 0 in
                          other models */
    RotaryAngles rotary; /**< LLaMA: how fast its rotary positions turn */
    bool own_head;       /**< a language model's head has its own weight, not the embedding's */
    bool qkv_bias;       /**< LLaMA: queries, keys and values have biases, as in Qwen2 */
    bool output_bias;    /**< LLaMA: the linear layer after attention has a bias */
    int cached; /**< positions that the caches of keys and values hold; 0 in training: no caches */
    int max_predictions; /**< the most tokens that a masked model predicts in a row; 0: no limit */
    Recompute recompute; /**< the parts that a backward pass computes again */
    /** blocks take and return a shard of the positions (lab 18); tp divides S */
    bool sequence_parallel;
} TransformerConfig;

/** An architecture. The layers belong to the builder's model. */
struct Architecture {
    const char *name; /**< "BERT" */
    bool is_language; /**< a language model: each position has logits of all tokens, [B,S,V/tp] */
    bool is_masked;   /**< a language model that predicts hidden tokens, not the next ones */
    /** Are the sizes possible on `tp` ranks? Otherwise returns false with `problem`. NULL if all
     *  sizes are. */
    bool (*check)(const TransformerConfig *config, int tp, Problem *problem);
    void *(*embedding_new)(
        Builder *b, const TransformerConfig *config); /**< parameters' names begin with b's path */
    Tensor *(*embed)(const void *embedding, Tensor *ids, const Mesh *mesh); /**< [B,S] -> [B,S,H] */
    void *(*block_new)(Builder *b, const TransformerConfig *config); /**< one of the blocks */
    /** x [B,S,H], mask [B,S] (1: a token) -> [B,S,H] */
    Tensor *(*block)(const void *block, Tensor *x, Tensor *mask, const Mesh *mesh);
    /** The same block for a shard of the positions, with the same names of parameters; NULL if the
     *  architecture has none. */
    void *(*sequence_block_new)(Builder *b, const TransformerConfig *config);
    /** x [B,S/tp,H], mask [B,S] -> [B,S/tp,H] */
    Tensor *(*sequence_block)(const void *block, Tensor *x, Tensor *mask, const Mesh *mesh);
    /** `embedding` is NULL if another stage holds it. */
    void *(*head_new)(Builder *b, const TransformerConfig *config, const void *embedding);
    Tensor *(*head)(const void *head, Tensor *x, const Mesh *mesh); /**< [B,S,H] -> logits */
    /** The sum of the losses, divided by `rows_of_a_step` -> [1]. Labels are classes [B]. In a
     * language model, they are the tokens to predict [B,S], NO_ID where there is none, and the
     *  divisor comes from the tape's batch. */
    Tensor *(*loss)(Tensor *logits, Tensor *labels, int64_t rows_of_a_step, const Mesh *mesh);
    /** Of a BERT: the same embedding and blocks, under the same names, with the head of its other
     *  task: of a classifier, its pretraining, and the reverse. NULL in other models. */
    const Architecture *other_task;
};

/** Architecture.sequence_block_new and sequence_block of the labs' BERT, whose blocks drop nothing
 *  before their residual sums. */
void *bert_sequence_block_new(Builder *b, const TransformerConfig *config);
Tensor *bert_sequence_block(const void *block, Tensor *x, Tensor *mask,
                            const Mesh *mesh); /**< see bert_sequence_block_new() */

/** Architecture.loss of a classifier. */
Tensor *classifier_loss(Tensor *logits, Tensor *labels, int64_t rows_of_a_step, const Mesh *mesh);

/** The labs' BERT: pre-LN blocks (Devlin et al., arXiv:1810.04805; pre-LN as in Megatron-LM), and a
 *  classifier on [CLS], whose logits [B,classes] are whole. */
extern const Architecture architecture_bert;
/** The same blocks, pretrained on text (TASK=mlm): a norm, and a head tied to the embedding. */
extern const Architecture architecture_masked_bert;
/** BERT as its authors published it: post-LN blocks with biases, exact GELU, token types, a pooler.
 *  Its logits [B,classes] are whole. */
extern const Architecture architecture_real_bert;
/** The same blocks, pretrained on text (TASK=mlm): a linear layer, GELU, a norm, and a decoder with
 *  a bias, tied to the embedding. */
extern const Architecture architecture_masked_real_bert;
/** GPT-2 (Radford et al., 2019): pre-LN blocks with biases, learned positions, GELU by tanh. */
extern const Architecture architecture_gpt2;
/** LLaMA (Touvron et al., arXiv:2302.13971): RMSNorm, rotary positions, SwiGLU, grouped heads of
 *  keys and values; see language.h. With biases of queries, keys and values it is Qwen2. */
extern const Architecture architecture_llama;

/** A transformer's layers. Belongs to the builder's model. */
typedef struct Transformer Transformer;

/** Which layers of a transformer a rank holds: all of them, or those of a stage of a pipeline. */
typedef struct TransformerPart {
    bool embedding; /**< and the positions */
    Range blocks;   /**< of 0..layers-1 */
    bool head;      /**< after the last block */
} TransformerPart;

/** All layers. */
TransformerPart transformer_whole(const TransformerConfig *config);

/** The floating-point operations that a step on `rows` rows of `seq` positions needs, by the
 *  formula of PaLM (arXiv:2204.02311, appendix B): for each token, 6 for each weight that it is
 *  multiplied by, and 12 S H for the attention of each block, causal or not. A classifier
 *  reads only the first position, so in the backward pass of its last block, only keys and values
 *  count. With masked tokens, the head needs only a fraction MASKED_SHARE of the positions,
 *  and at most max_predictions in a row.
 *  Recomputation does not count. */
double transformer_work(const TransformerConfig *config, int64_t rows, int64_t seq);

/** Checks that the sizes fit `tp` ranks; if not, returns false with `problem`. */
bool transformer_check(const TransformerConfig *config, int tp, Problem *problem);

/** The layers of this part, which belong to the builder's model. Sizes must have passed
 *  transformer_check(). */
Transformer *transformer_new(Builder *b, const TransformerConfig *config, TransformerPart part);

/** ids [B,S] -> [B,S,H], with positions where there are any; if blocks take a shard of the
 *  positions, this rank's. The part must hold the embedding. */
Tensor *transformer_embed(const Transformer *transformer, Tensor *ids, const Mesh *mesh);
/** x [B,S,H], mask [B,S] (1: a token) -> [B,S,H]: the blocks of the part, recomputed as the config
 *  says. Values are released a block at a time. With sequence_parallel, x is a shard of the
 *  positions, and so is the result, unless the part holds the head: then it is whole. */
Tensor *transformer_run_blocks(const Transformer *transformer, Tensor *x, Tensor *mask,
                               const Mesh *mesh);
/** x [B,S,H] -> logits: [B,classes], or in a language model [B,S,V/tp], split along the vocabulary.
 *  The part must hold the head. */
Tensor *transformer_head(const Transformer *transformer, Tensor *x, const Mesh *mesh);
/** The loss of these logits: see Architecture.loss. */
Tensor *transformer_loss(const Transformer *transformer, Tensor *logits, Tensor *labels,
                         int64_t rows_of_a_step, const Mesh *mesh);
/** ids [B,S], mask [B,S] -> logits: the forward pass of a whole transformer. */
Tensor *transformer_forward(const Transformer *transformer, Tensor *ids, Tensor *mask,
                            const Mesh *mesh);

/** Called with sequence_parallel, between the embedding and the first block: x [B,S,H], whole ->
 *  this rank's positions [B,S/tp,H]. */
Tensor *split_positions(Tensor *x, const Mesh *mesh);
/** Called between the last block and the head: this rank's positions [B,S/tp,H] -> [B,S,H]. */
Tensor *all_positions(Tensor *x, const Mesh *mesh);

/** Runs the attention of a block: `run` is its function, x [B,S,H] its input. With
 *  RECOMPUTE_ATTENTION, runs it as a segment of lab 19; otherwise calls `run` directly. In the
 *  labs' BERT, lab 7 calls lab 4's attention_forward(): link it with --wrap=attention_forward. */
Tensor *attention_segment(Tensor *(*run)(const void *layer, Tensor *x, Tensor *mask,
                                         const Mesh *mesh),
                          const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh);
