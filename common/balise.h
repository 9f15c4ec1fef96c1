/** @file
 * Every function and type that labs use.
 *
 * Letters in shapes: B batch, S sequence, H hidden, F feed-forward (inner), V vocabulary, A heads, D head
 * size; tp ranks that split a layer, dp replicas of the model, pp stages of a pipeline.
 *
 * A lab may call all functions that the kit gives, those of the labs that it builds on, and MPI itself
 * (balise_mpi.h). It frees nothing: tensors belong to the tape and live for one step; layers and
 * parameters belong to the builder, and groups to the mesh. The kit's functions that return a Tensor
 * never change their arguments, but the result may share an argument's memory. Any misuse ends the run
 * with an error that gives the line in your file, the shapes and placements, and a HINT.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ids.h"

typedef struct Tensor Tensor; /**< Numbers, a shape and a placement (see Placement). */
typedef struct Group Group;   /**< Ranks that communicate with each other. */

enum { LAST = -1 }; /**< the last dimension of a tensor, as the `dim` of a function */

/* ---- Groups ---- */

/** The grid of ranks. */
typedef struct Mesh {
    Group *world; /**< every rank of the run */
    Group *tp;    /**< the ranks that split one model: made in lab 8, NULL before */
    Group *dp;    /**< the ranks that hold this shard in every replica: made in lab 10, NULL before */
    Group *pp;    /**< the stages of this rank's pipeline, in order; before lab 14, NULL if there is only one */
    int tp_rank, tp_degree; /**< this rank's place in the tp group, and the group's size; before lab 8, in the world */
    int dp_rank, dp_degree; /**< this rank's place in the dp group, and the group's size; before lab 10, 0 and 1 */
    int pp_rank, pp_degree; /**< this rank's stage, from 0, and the number of stages */
} Mesh;

int group_rank(const Group *group); /**< this rank's number in the group, from 0 */
int group_size(const Group *group); /**< the number of ranks in the group */

/** Splits a group into several, like MPI_Comm_split: ranks with the same color form a group,
 * ordered by key (ties: by their rank in `group`). Every rank of `group` must call it. Returns this
 * rank's new group, which belongs to `group`. */
Group *group_split(Group *group, int color, int key);

/* ---- Collectives: every rank of the group calls them, in the same order. Not on the tape. ------------ */

Tensor *group_all_reduce(Group *group, Tensor *x); /**< the sum of every rank's x */
Tensor *group_all_gather(Group *group, Tensor *x, int dim); /**< every rank's x, side by side along dim */
Tensor *group_reduce_scatter(Group *group, Tensor *x, int dim); /**< this rank's part of the sum, along dim */
Tensor *group_broadcast(Group *group, Tensor *x, int root);     /**< the x of rank `root` of the group */
void group_sum(Group *group, double *values, int count); /**< sums the values over the ranks, in place */

/* ---- Labs 1 and 9: f, g and the gather. You write the pairs; the runtime puts them on the tape. ----- */

Tensor *duplication(Tensor *x, const Mesh *mesh); /**< f: a copy of x; the copy's gradient is a partial sum */
Tensor *all_reduce(Tensor *x, const Mesh *mesh);  /**< g: partial sums -> the sum, whole on every rank */
Tensor *all_gather(Tensor *x, int dim, const Mesh *mesh); /**< shards -> the whole tensor, on every rank */

/** The pairs: each backward takes dy, the gradient of its forward's result, and returns the
 * gradient of its forward's argument. (Megatron-LM, arXiv:1909.08053, figure 3: f is the identity
 * forward and an all-reduce backward; g is the opposite.) */
Tensor *duplication_forward(Tensor *x, const Mesh *mesh);
Tensor *duplication_backward(Tensor *dy, const Mesh *mesh);         /**< backward of f */
Tensor *all_reduce_forward(Tensor *x, const Mesh *mesh);            /**< forward of g */
Tensor *all_reduce_backward(Tensor *dy, const Mesh *mesh);          /**< backward of g */
Tensor *all_gather_forward(Tensor *x, int dim, const Mesh *mesh);   /**< dim may be LAST */
Tensor *all_gather_backward(Tensor *dy, int dim, const Mesh *mesh); /**< backward of the gather */

/* ---- Operations: each has its own backward --------------------------------------------------------- */

/** y = x W^T: x [..,in], weight [out,in] -> [..,out]. With several weights in one tensor [n,out,in], returns all
 * results: [..,n,out]. */
Tensor *linear(Tensor *x, Tensor *weight);
/** y = x W^T + bias, with bias [out], or [n,out] for a weight [n,out,in]. */
Tensor *linear_with_bias(Tensor *x, Tensor *weight, Tensor *bias);
/** y [..,H] = x [..,H] + bias [H]. If x is split along LAST, this rank has the same part of both. */
Tensor *add_bias(Tensor *x, Tensor *bias);

/** Row ids[i] of the table for each id: ids [B,S], weight [V,H] -> [B,S,H]; NO_ID gives a row of
 * zeros. */
Tensor *lookup(Tensor *ids, Tensor *weight);

/** id - first where first <= id < end, otherwise NO_ID: the ids as row numbers of a table that
 *  holds rows first to end-1. */
Tensor *ids_between(Tensor *ids, int first, int end);

/** x Φ(x), the exact form (arXiv:1606.08415). */
Tensor *gelu(Tensor *x);
Tensor *add(Tensor *x, Tensor *y); /**< x and y have the same shape */

Tensor *part(Tensor *x, int dim, int k, int n); /**< part k (from 0) of n equal parts along dim, like torch.chunk */
/** x[..,i,..] along dim, without that dimension, like torch.select: take(x, 2, i) of x [B,S,n,H] -> [B,S,H]. */
Tensor *take(Tensor *x, int dim, int i);

/** softmax(factor q k^T) v for each head (arXiv:1706.03762, equation 1): q, k, v [B,S,heads*D] ->
 * the same shape. The `heads` are side by side in q, k and v; mask [B,S] is 0 for a hidden key. */
Tensor *attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor);

/** [B,S,H] -> [B,H]: the row of [CLS] in each text. */
Tensor *first_token(Tensor *x);

int64_t tensor_size(const Tensor *x, int i); /**< the size on this rank of dimension i, which may be LAST */
void scale(Tensor *x, float factor);         /**< multiplies in place; not on the tape */

/* ---- Parameters and layers ----------------------------------------------------------------------------- */

/** Owns the layers and parameters made with it. */
typedef struct Builder {
    const Mesh *mesh; /**< the ranks that the model is split over */
} Builder;

/** The sizes of a tensor's dimensions. */
typedef struct Shape {
    int rank;        /**< how many dimensions: 0 to 4 */
    int64_t size[4]; /**< their sizes; the first `rank` are used */
} Shape;
/** SHAPE(B, S, H) is a Shape with three dimensions. */
#define SHAPE(...) ((Shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

/** How a tensor is distributed over the tp ranks. */
typedef struct Placement {
    int kind; /**< whole, copied, shard, partial sum, unknown: as tensor_print() shows it */
    int dim;  /**< of a shard: the dimension along which it is split */
} Placement;
Placement whole(void); /**< every tp rank holds the full tensor */
Placement shard(int dim); /**< split along dim into tp_degree parts, like torch.chunk */
Placement undecided(int balise); /**< in a start file: a placement for you to choose */

/** Makes a parameter of the full shape `shape`. Its initial values depend on its name and the
 *  global index, not on the layout or on what was made before. */
Tensor *parameter(Builder *b, const char *name, Shape shape, Placement placement);

/** The same, with zeros as initial values, as for a bias. */
Tensor *zero_parameter(Builder *b, const char *name, Shape shape, Placement placement);

/** The index, from 0, that this rank's first row or column has in the full parameter; 0 if the
 *  parameter is whole. */
int shard_begin(const Tensor *parameter);

/** The same builder, with `name` and a dot before the names of everything made with it. */
Builder *within(Builder *b, const char *name);

/** Returns zeroed memory for a layer; it lives as long as the model. Call it only where a layer is
 *  made; NEW(b, Type) is shorter. */
void *new_layer(Builder *b, int64_t bytes);
/** Memory for a layer of this type, zeroed. */
#define NEW(b, Type) ((Type *)new_layer((b), sizeof(Type)))

/** Given: y = x W^T, whole on every rank, without communication. */
typedef struct Linear Linear;
Linear *linear_new(Builder *b, int in, int out);        /**< makes a parameter "weight" [out,in] */
Tensor *linear_forward(const Linear *layer, Tensor *x); /**< [..,in] -> [..,out] */

/** Given: normalises along the last dimension (arXiv:1607.06450), whole on every rank. */
typedef struct LayerNorm LayerNorm;
LayerNorm *layer_norm_new(Builder *b, int size);       /**< makes parameters "weight" and "bias" [size] */
Tensor *layer_norm(const LayerNorm *layer, Tensor *x); /**< [..,size] -> the same shape */

/** Given: in training, sets each element to zero with the given probability; the mask is the same
 *  in every layout. */
typedef struct Dropout Dropout;
Dropout *dropout_new(Builder *b, float probability); /**< probability of dropping an element, from 0 to below 1 */
Tensor *dropout(const Dropout *layer, Tensor *x);    /**< kept elements are divided by 1 - probability */

/* ---- Labs 2 to 7: the layers ------------------------------------------------------------------------ */

/** Lab 2: a linear layer split by columns of x W^T. Each TODO(n) in a lab's file says what to write
 *  there. */
typedef struct ColWiseLinear ColWiseLinear;
ColWiseLinear *col_wise_linear_new(Builder *b, int in, int out); /**< weight [out,in] */
/** [B,S,in] -> [B,S,out] */
Tensor *col_wise_linear_forward(const ColWiseLinear *layer, Tensor *x, const Mesh *mesh);

/** Lab 3: a table split over the ranks. */
typedef struct Embedding Embedding;
Embedding *embedding_new(Builder *b, int vocabulary, int hidden); /**< makes a table [V,H] */
Tensor *embedding_forward(const Embedding *layer, Tensor *ids, const Mesh *mesh); /**< [B,S] -> [B,S,H] */

/** Lab 4: self-attention, its heads split over the ranks. */
typedef struct MultiHeadSelfAttention MultiHeadSelfAttention;
MultiHeadSelfAttention *attention_new(Builder *b, int hidden, int heads); /**< each head has H/heads numbers */
/** x [B,S,H], mask [B,S] -> [B,S,H] */
Tensor *attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask, const Mesh *mesh);

/** Lab 5: two linear layers with GELU and dropout in between. */
typedef struct FeedForward FeedForward;
FeedForward *feed_forward_new(Builder *b, int in, int inner, int out, float p); /**< p: dropout probability */
Tensor *feed_forward_forward(const FeedForward *layer, Tensor *x, const Mesh *mesh); /**< [B,S,in] -> [B,S,out] */

/** Lab 6: the same with one communication. */
typedef struct ColRowLinearPair ColRowLinearPair;
/** p: dropout probability. */
ColRowLinearPair *col_row_linear_pair_new(Builder *b, int in, int inner, int out, float p);
/** [..,in] -> [..,out] */
Tensor *col_row_linear_pair_forward(const ColRowLinearPair *layer, Tensor *x, const Mesh *mesh);

/** Lab 7: a block of BERT, with attention and feed-forward, each after a norm and with a residual
 *  path. */
typedef struct Block Block;
Block *block_new(Builder *b, int hidden, int heads, float p); /**< p: the probability of each of its dropouts */
Tensor *block_forward(const Block *layer, Tensor *x, Tensor *mask, const Mesh *mesh); /**< [B,S,H] -> [B,S,H] */

/** Lab 7: class scores of each text, from the row of [CLS]. */
typedef struct Classifier Classifier;
Classifier *classifier_new(Builder *b, int hidden, int classes, float p); /**< p: dropout probability */
Tensor *classifier_forward(const Classifier *layer, Tensor *x, const Mesh *mesh); /**< [B,S,H] -> [B,classes] */

/* ---- Labs 8 and 10: the grid ------------------------------------------------------------------------ */

void mesh_init_tp(Mesh *mesh, int tp); /**< sets tp, tp_rank, tp_degree; tp divides the size of the world */
void mesh_init_dp(Mesh *mesh); /**< sets dp, dp_rank, dp_degree; called after mesh_init_tp */

/* ---- Lab 11: data parallelism ----------------------------------------------------------------------- */

/** The treatment of rows that do not fill a round over the replicas. */
typedef enum Tail {
    EVERY_ROW_ONCE, /**< keep them */
    PAD,            /**< repeat the first rows of the epoch's order */
    DROP            /**< drop them */
} Tail;

/** Selects the rows of the data set that this replica reads in an epoch. The caller owns the
 *  arrays. */
typedef struct Sampler {
    int64_t rows;   /**< number of rows in the data set */
    uint64_t seed;  /**< determines every epoch's order, see permutation() */
    Tail tail;      /**< in evaluation EVERY_ROW_ONCE: some replicas then read fewer rows */
    int64_t *order; /**< room for [rows]: all rows in this epoch's order */
    int64_t *mine;  /**< room for [rows/dp, rounded up]: the rows that this replica reads, in order */
} Sampler;
/** Fills `order` and `mine`; returns the length of `mine`. */
int64_t sampler_set_epoch(Sampler *sampler, int64_t epoch, const Mesh *mesh);
void permutation(int64_t *order, int64_t rows, uint64_t seed, int64_t epoch); /**< 0..rows-1, shuffled */

typedef struct Pending Pending; /**< a started sum or send that has not been waited for yet */
/** The gradients of a few neighbouring parameters, contiguous in memory. A large embedding table
 *  can have a bucket of its own, which may hold only the rows that some replica has used. */
typedef struct Bucket {
    Tensor *gradients; /**< this rank's; the optimiser reads the result from the same memory */
    /** For you, NULL at the beginning of a step: bucket_ready() stores it, buckets_finish() waits for it. */
    Pending *pending;
} Bucket;
Pending *group_all_reduce_start(Group *group, Tensor *x); /**< in place; do not touch x before the wait */
void pending_wait(Pending *pending);        /**< returns when what was started is complete; call it once per start */

void bucket_ready(Bucket *bucket, const Mesh *mesh); /**< called when backward has filled this bucket */
void buckets_finish(Bucket *buckets, int count, const Mesh *mesh); /**< called once, before the step */

/** Sums over rows of the data set. */
typedef struct Metrics {
    double loss_sum; /**< sum of the rows' losses */
    double correct;  /**< number of rows classified correctly */
    double count;    /**< number of rows */
} Metrics;
void metrics_synchronise(Metrics *metrics, const Mesh *mesh); /**< sums over the replicas */

/* ---- Lab 12: stages of a pipeline ------------------------------------------------------------------- */

/** Consecutive numbers: begin, begin + 1, ... */
typedef struct Range {
    int64_t begin, end; /**< end is the first number after the range */
} Range;

/** Given: this rank's part of the model, and the batch. Tokens pass through an embedding, then
 * through all blocks in order, then through a classifier and the loss. The first stage holds the
 * embedding, the last one the classifier, and each stage the blocks of stage_blocks(). `micro` is
 * the number of a micro-batch; it is 0 for a batch in one piece. */
typedef struct Stage Stage;
Tensor *stage_embed(Stage *stage, int micro); /**< first stage only: the embedded tokens [B,S,H] */
/** Runs this stage's blocks and, on the last stage, the classifier and the loss: x [B,S,H] ->
 * [B,S,H], or the loss [1]. */
Tensor *stage_run(Stage *stage, int micro, Tensor *x);
/** Runs backward from the result of stage_run(); dy is its gradient, or NULL on the last stage,
 * which begins the backward pass. Returns the gradient of x [B,S,H], or NULL on the first stage. */
Tensor *stage_run_backward(Stage *stage, int micro, Tensor *dy);
/** Sends x [B,S,H] to stage `to`. In lab 12 it is given, and may wait until that stage has begun to
 * receive x. In lab 13 you write it, and it returns at once. An evaluation calls it too, through
 * forward_step(). */
void stage_send(Stage *stage, Tensor *x, int to);
/** Receives x [B,S,H] from stage `from`, in mesh->pp with tag 0: the input of stage_run(). */
Tensor *stage_receive(Stage *stage, int micro, int from);
/** Receives dy [B,S,H] from stage `from` in the same way: the gradient of the x that this stage
 *  sent there. */
Tensor *stage_receive_gradient(Stage *stage, int micro, int from);

Range stage_blocks(int blocks, const Mesh *mesh); /**< which of 0..blocks-1 this rank's stage runs */
void forward_step(Stage *stage, int micro, const Mesh *mesh);  /**< this stage's part of a forward pass */
void backward_step(Stage *stage, int micro, const Mesh *mesh); /**< this stage's part of the backward pass */
void pipeline_step(Stage *stage, const Mesh *mesh); /**< both passes; all gradients are complete after it */

/* ---- Lab 13: micro-batches -------------------------------------------------------------------------- */

int stage_micros(const Stage *stage); /**< the number of micro-batches in a batch; they are numbered from 0 */
/** Sends x [B,S,H] to stage `to`, and may wait until that stage has begun to receive it. */
void stage_send_blocking(Stage *stage, Tensor *x, int to);
/** Starts sending x [B,S,H] to stage `to`, and returns at once. Do not change x before stage_sends_finish(). */
void stage_send_start(Stage *stage, Tensor *x, int to);
void stage_sends_finish(Stage *stage); /**< returns when every send that this stage has started is complete */

/** Both passes of all micro-batches: first every forward pass, then every backward pass, or any other schedule that
 * takes no longer. All gradients are complete after it. (GPipe, arXiv:1811.06965.) */
void gpipe_step(Stage *stage, const Mesh *mesh);
/** Both passes of all micro-batches, forward and backward passes alternating, so that as few
 *  micro-batches as possible wait for their backward pass. All gradients are complete after it.
 *  (PipeDream-Flush, arXiv:2104.04473, section 2.2.) */
void one_f_one_b_step(Stage *stage, const Mesh *mesh);

/* ---- Lab 14: the grid in three dimensions ------------------------------------------------------------ */

/** Replaces labs 8 and 10: sets tp, dp and pp, this rank's place in each group, and the groups' sizes. tp times pp
 * divides the size of the world, and rank = (pp_rank * dp_degree + dp_rank) * tp_degree + tp_rank. (Megatron-LM,
 * arXiv:2104.04473.) */
void mesh_init_3d(Mesh *mesh, int tp, int pp);

/** Called in each backward pass, when that pass has added its last gradients to a bucket. A step has `passes`
 * backward passes on this stage, one for each micro-batch; this one is number `pass`, from 0. */
void bucket_filled(Bucket *bucket, int pass, int passes, const Mesh *mesh);

/** Called before metrics_synchronise(): the last stage has counted rows; the others have zeros. Afterwards, every stage
 * has the sums of its pipeline. */
void metrics_over_stages(Metrics *metrics, const Mesh *mesh);

/** The norm of the whole model's gradient, the same on every rank. `shards` is the sum of squares of this rank's
 * gradients of split parameters; `whole` is the same sum for the parameters that every rank of the tp group holds
 * whole. Called after buckets_finish(). */
double gradient_norm(double shards, double whole, const Mesh *mesh);

/* ---- Lab 15: an all-reduce from messages --------------------------------------------------------------- */

/** Elements `begin` to `end` - 1 of x, counted row by row: [end - begin]. The slice shares x's
 *  memory, so tensor_data() of the slice points into x. begin may equal end. Not on the tape. */
Tensor *slice(Tensor *x, int64_t begin, int64_t end);
/** sum += x, in place. Both have the same number of elements. Not on the tape. */
void accumulate(Tensor *sum, Tensor *x);
/** Sends the numbers of x to rank `to` of the group, and may wait until that rank has begun to
 *  receive them. */
void group_send(Group *group, Tensor *x, int to);
/** Starts sending the numbers of x to rank `to` of the group, and returns at once. Do not change x before
 * pending_wait() has returned: pending_wait() waits until that rank has begun to receive. */
Pending *group_send_start(Group *group, Tensor *x, int to);
/** Receives the numbers of x, in place, from rank `from` of the group, which must send as many. Returns when they have
 *  arrived. */
void group_receive(Group *group, Tensor *x, int from);

/** Which of the numbers 0..count-1 are chunk k (from 0) of n: chunks follow each other, none is missing, and their
 * sizes differ by 1 at most. */
Range ring_chunk(int64_t count, int k, int n);
/** Afterwards, chunk k of x on rank k of n is the sum of this chunk over the ranks; the rest of x is undefined. In
 * place, by messages to neighbours: each rank sends (n-1)/n of x, in n - 1 rounds. (P. Patarasuk, X. Yuan 2009.) */
void ring_reduce_scatter(Group *group, Tensor *x);
/** Before, rank k of n has chunk k of x; afterwards, every rank has all chunks. In place, in n - 1
 * rounds of messages to neighbours. */
void ring_all_gather(Group *group, Tensor *x);

/* ---- Lab 16: weight averaging ------------------------------------------------------------------------ */

/** Is an average due now? Called after each step of the optimiser, which every replica takes with its own gradients.
 * `step` counts the steps done, so it is 1 in the first call of a new run. An average is due every `every` steps, and
 * whenever `last` is set: the model is then evaluated or saved before the next step, or the run ends, so all replicas
 * must have the same weights. */
bool average_is_due(int64_t step, int64_t every, bool last);
/** Called when an average is due. Afterwards, all replicas have the mean of their weights, weighted by rows. `weights`
 * [P] are all weights of this rank, changed in place. `rows` is the number of rows (for a language model, of tokens) that
 * this replica has trained on since the last average; it may be 0 on some replicas, but not on all. (Federated
 * averaging, arXiv:1602.05629, algorithm 1.) */
void average_weights(Tensor *weights, double rows, const Mesh *mesh);

/* ---- Lab 17: ZeRO stage 1, a sharded optimiser --------------------------------------------------------- */

/** Which of the numbers 0..count-1 are part k (from 0) of n: parts follow each other, none is missing, and none is
 * longer than count / n, rounded up. Where count is less than n, some parts are empty. */
typedef Range Partition(int64_t count, int k, int n);
/** In place: afterwards, part k of x on rank k of the group is the sum of this part over the ranks, added in rank
 * order. `cut` determines the parts. The rest of x is undefined. Every rank of the group calls it. Not on the tape. */
void group_reduce_scatter_parts(Group *group, Tensor *x, Partition *cut);
/** In place: rank k of the group contributes part k of x; afterwards every rank has all parts.
 * Every rank of the group calls it. Not on the tape. */
void group_all_gather_parts(Group *group, Tensor *x, Partition *cut);

/** Given: AdamW or SGD, with the state (AdamW's m and v) of this replica's part of the weights only. */
typedef struct Optimizer Optimizer;
/** Updates this replica's part; call it once a step. `weights` are the part's weights, changed in
 *  place; `gradients` holds one gradient for each. You may skip the call if the part is empty. */
void optimizer_update(Optimizer *optimizer, Tensor *weights, Tensor *gradients);

/** A Partition: replica k of n updates the weights of part k, and keeps the optimiser's state for no others. `count` is
 * the number of weights of a rank. (ZeRO, arXiv:1910.02054, section 5.1.) */
Range optimizer_part(int64_t count, int k, int n);
/** Called once a step, after the backward pass. `gradients` [P] are this replica's gradients of all weights of this
 * rank, changed in place: its own part becomes the mean over the replicas. The rest is undefined afterwards. */
void reduce_scatter_gradients(Tensor *gradients, const Mesh *mesh);
/** Called before gradients are clipped, with the arguments of gradient_norm() (lab 14) for this replica's own part: the
 * sums of squares of its gradients of split parameters, and of parameters that every rank of the tp group holds whole.
 * Afterwards, both are sums over all parts; the runtime then calls gradient_norm(). */
void squares_over_parts(double *shards, double *whole, const Mesh *mesh);
/** Called last: takes the step on this replica's part, with optimizer_update(). `weights` [P] are all weights of this
 * rank, the same on all replicas. Afterwards they are again the same on all replicas, and each weight has been
 * updated. In this replica's part, `gradients` [P] are the mean over the replicas, clipped. */
void sharded_step(Optimizer *optimizer, Tensor *weights, Tensor *gradients, const Mesh *mesh);

/* ---- Lab 18: sequence parallelism ---------------------------------------------------------------------- */

/** This rank's positions -> all positions: x [B,S/tp,H] -> [B,S,H]. Every rank then computes with all positions. So the
 * gradient is a sum over the ranks, and each rank gets its positions of that sum. The runtime puts your pair on the
 * tape. It does not keep the result: the backward pass gathers again. (The paper's g: V. Korthikanti and others,
 * arXiv:2205.05198, section 4.2.2.) */
Tensor *gather_sequence(Tensor *x, const Mesh *mesh);
/** Partial sums -> this rank's positions of the sum: x [B,S,H] -> [B,S/tp,H]. tp must divide S. (The paper's g-bar.) */
Tensor *reduce_scatter_sequence(Tensor *x, const Mesh *mesh);

/** The pairs: each backward takes dy, the gradient of its forward's result, and returns the gradient of its forward's
 * argument. */
Tensor *gather_sequence_forward(Tensor *x, const Mesh *mesh);
Tensor *gather_sequence_backward(Tensor *dy, const Mesh *mesh);         /**< backward of the gather */
Tensor *reduce_scatter_sequence_forward(Tensor *x, const Mesh *mesh);   /**< tp must divide dimension 1 of x */
Tensor *reduce_scatter_sequence_backward(Tensor *dy, const Mesh *mesh); /**< backward of the reduce-scatter */

/** Given: attention with this rank's heads, as in lab 4, without f and g. */
typedef struct PartialAttention PartialAttention;
/** x [B,S,H], all positions; mask [B,S] -> [B,S,H], a partial sum */
Tensor *attention_partial(const PartialAttention *layer, Tensor *x, Tensor *mask);
/** Given: two linear layers with this rank's part of the inner width, as in lab 6, without f and g. */
typedef struct PartialFeedForward PartialFeedForward;
/** x [B,S,H], all positions -> [B,S,H], a partial sum */
Tensor *feed_forward_partial(const PartialFeedForward *layer, Tensor *x);

/** Given: the layers of a block of BERT. Norm, dropout and residual also take a shard of the positions. The dropout
 * masks equal those of the same block on one rank. */
typedef struct SequenceBlock {
    LayerNorm *norm1, *norm2;         /**< before the attention; before the feed-forward layers */
    PartialAttention *attention;      /**< the attention */
    PartialFeedForward *feed_forward; /**< the feed-forward layers */
    Dropout *dropout1, *dropout2;     /**< of the results of these two, before the residual sums */
} SequenceBlock;
/** The block on this rank's positions: x [B,S/tp,H], mask [B,S] -> [B,S/tp,H]. A rank holds all positions only where a
 * product or attention needs them. */
Tensor *sequence_block_forward(const SequenceBlock *layer, Tensor *x, Tensor *mask, const Mesh *mesh);

/** Called once a step, after the last backward pass. `gradients` [P] belong to the weights and
 * biases of all norms that were applied to a shard of the positions, and to nothing else: each rank has
 * the terms of its own positions. Afterwards, every rank has the sums over all positions. In place. */
void sum_norm_gradients(Tensor *gradients, const Mesh *mesh);

/* ---- Lab 19: recomputation ---------------------------------------------------------------------------- */

/** Given: a part of the model that takes x [B,S,H] and returns [B,S,H], one block or only its attention. It
 * knows its layers and the mask. */
typedef struct Segment Segment;
/** Runs the segment on the tape, which keeps everything that its backward pass reads. `draw` selects its dropout masks:
 * all runs with the same `draw` have the same masks. */
Tensor *segment_run(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh);
/** Returns the same numbers, but not on the tape: only the result is kept. */
Tensor *segment_values(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh);
/** Runs backward from y, the result of segment_run(); dy is its gradient. Adds to the gradients of
 * the parameters and of the leaf, and releases what that run has kept. Call it only in
 * recompute_backward(), once for each run. */
void segment_backward(Tensor *y, Tensor *dy);
Tensor *leaf(Tensor *x);          /**< the numbers of x; a backward pass ends here */
Tensor *leaf_gradient(Tensor *x); /**< the gradient of a leaf, after segment_backward() */

/** The pair: forward returns the segment's result [B,S,H]. Backward takes dy, the gradient of that result, and returns
 * the gradient of x; it also adds to the gradients of the segment's parameters. In between, the runtime keeps x and
 * `draw` of each call. A pass may call a segment several times, each time with another draw. (T. Chen and others,
 * arXiv:1604.06174.) */
Tensor *recompute_forward(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh);
/** Backward of the pair. */
Tensor *recompute_backward(const Segment *segment, Tensor *x, Tensor *dy, int64_t draw, const Mesh *mesh);

/* ---- Lab 20: linear layers with biases, split over the ranks ------------------------------------------ */

/** A whole x -> this rank's part of it along dim; the gradients of all parts are gathered. The runtime puts your pair
 * on the tape. (Megatron-LM's scatter_to_tensor_model_parallel_region.) */
Tensor *scatter(Tensor *x, int dim, const Mesh *mesh);
Tensor *scatter_forward(Tensor *x, int dim, const Mesh *mesh);   /**< dim counts from 0 */
Tensor *scatter_backward(Tensor *dy, int dim, const Mesh *mesh); /**< backward of the scatter */

/** A linear layer split along its outputs. (The layers and the names of their options come from
 * Megatron-LM, arXiv:1909.08053, section 3.) */
typedef struct ColumnParallelLinear {
    Tensor *weight;     /**< "weight" [out,in] */
    Tensor *bias;       /**< "bias" [out], initially zeros */
    bool gather_output; /**< every rank gets all outputs */
} ColumnParallelLinear;
ColumnParallelLinear column_parallel_linear_new(Builder *b, int in, int out, bool gather_output); /**< makes both */
/** x [..,in], whole -> [..,out], whole, if gather_output; otherwise this rank's outputs [..,out/tp]. */
Tensor *column_parallel_linear_forward(const ColumnParallelLinear *layer, Tensor *x, const Mesh *mesh);

/** A linear layer split along its inputs. */
typedef struct RowParallelLinear {
    Tensor *weight;         /**< "weight" [out,in] */
    Tensor *bias;           /**< "bias" [out], initially zeros */
    bool input_is_parallel; /**< x holds only this rank's inputs */
} RowParallelLinear;
RowParallelLinear row_parallel_linear_new(Builder *b, int in, int out, bool input_is_parallel); /**< makes both */
/** x [..,in/tp] if input_is_parallel, otherwise x [..,in], whole; returns [..,out], whole. */
Tensor *row_parallel_linear_forward(const RowParallelLinear *layer, Tensor *x, const Mesh *mesh);

/** The three linear layers before attention as one, split by heads. (GPT-2's c_attn; Megatron-LM's query_key_value,
 * which was a ColumnParallelLinear with stride=3.) */
typedef struct QueryKeyValue {
    Tensor *weight; /**< "weight" [3,H,H]: the weights of q, k and v, in this order */
    Tensor *bias;   /**< "bias" [3,H], initially zeros */
} QueryKeyValue;
/** The arguments of attention. */
typedef struct Projections {
    Tensor *q, *k, *v; /**< [B,S,H/tp] each: those of this rank's heads */
} Projections;
QueryKeyValue query_key_value_new(Builder *b, int hidden); /**< makes both */
/** x [B,S,H], whole -> q, k and v. */
Projections query_key_value_forward(const QueryKeyValue *layer, Tensor *x, const Mesh *mesh);

/* ---- Lab 21: the vocabulary of a language model ------------------------------------------------------- */

/** The largest number of each row: [B,S,V/tp] -> [B,S]. For a shard, each rank has the maxima of
 * its own columns; group_all_max() turns them into those of all columns. Values only: no gradient
 * flows through the maxima, because the loss does not depend on them. */
Tensor *row_max(Tensor *x);
/** Like group_all_reduce(), with the largest number over the ranks instead of the sum. */
Tensor *group_all_max(Group *group, Tensor *x);
/** The sum of exp(x - most) over each row: [B,S,V/tp] -> [B,S]; for a shard, a partial sum. most [B,S] must be the
 * maxima over all ranks. The kit cannot check that: with the maxima of its own columns, each rank would scale its
 * terms differently. */
Tensor *row_sum_exp(Tensor *x, Tensor *most);
/** x[b,s,ids[b,s]] - most[b,s], and 0 for NO_ID: [B,S,V/tp] -> [B,S]; for a shard, a partial sum, in which one rank
 * has the only term. ids [B,S] are columns of this rank: see own_ids(). */
Tensor *row_pick(Tensor *x, Tensor *most, Tensor *ids);
/** Turns ids of the whole vocabulary into columns of this rank's logits, which linear() has made. An id whose column is
 * on another rank becomes NO_ID, and NO_ID stays NO_ID. Any other id outside the vocabulary is misuse. */
Tensor *own_ids(Tensor *ids, const Tensor *logits);
Tensor *logarithm(Tensor *x);           /**< the natural logarithm of each element */
Tensor *subtract(Tensor *x, Tensor *y); /**< x - y, of the same shape */
/** The sum of x [B,S] over the positions that have a target, divided by the number of such positions in the step (in
 * all micro-batches) -> [1]. x is not a partial sum; targets [B,S] are NO_ID where there is none. */
Tensor *mean_over_tokens(Tensor *x, Tensor *targets);

/** The embedding: table [V/tp,H], this rank's rows of the table [V,H], from row shard_begin() on; ids [B,S] of the
 * whole vocabulary -> [B,S,H], whole. */
Tensor *vocabulary_embedding(Tensor *table, Tensor *ids, const Mesh *mesh);
/** The head, tied if the embedding has the same table: x [B,S,H], whole -> logits [B,S,V/tp] of this rank's rows of the
 * table. (Megatron-LM, arXiv:1909.08053, section 3.) */
Tensor *vocabulary_logits(Tensor *table, Tensor *x, const Mesh *mesh);
/** The mean over the tokens of -log softmax(logits)[target] -> [1]. No rank gathers a whole row of logits.
 * logits [B,S,V/tp] come from vocabulary_logits(); targets [B,S] are ids of the whole vocabulary,
 * NO_ID where nothing is predicted. */
Tensor *vocabulary_parallel_cross_entropy(Tensor *logits, Tensor *targets, const Mesh *mesh);

/* ---- When the functions above are not enough --------------------------------------------------------------- */

/** Your own differentiable operation: a pair of plain functions, which apply() puts on the tape.
 * backward gets only dy, so the operation must be linear in x, like a sum or a gather. (Do not keep x
 * in a static variable: backward would see the x of the last call.) */
typedef struct Op {
    const char *name;                                  /**< for messages */
    Tensor *(*forward)(Tensor *x, const Mesh *mesh);   /**< returns the result, perhaps x itself */
    Tensor *(*backward)(Tensor *dy, const Mesh *mesh); /**< returns the gradient of x, of x's shape */
} Op;
/** `op` must outlive the step: make it static. With several tp ranks, the kit does not know the placement of the
 *  result; placed() can declare it. */
Tensor *apply(const Op *op, Tensor *x, const Mesh *mesh);

/** x's numbers, row by row, to read and write until you next pass x to a function of the kit. The kit
 * then no longer knows the placement of x; placed() can declare it. Ids and masks are integers:
 * (int32_t *)tensor_data(ids). */
float *tensor_data(Tensor *x);
Tensor *placed(Tensor *x, Placement placement); /**< x with a placement that you declare; on the tape */
Tensor *tensor_copy(Tensor *x);        /**< a copy in its own memory; not on the tape */
int64_t tensor_count(const Tensor *x); /**< the number of elements that this rank holds */

/** For debugging: prints the shape of x on this rank, its placement and its numbers on stdout; if
 * they are many, the first and the last. In grading, prints the layer, pass and step too. Each line
 * begins with the rank. Changes nothing. `make grade LAB=n SEED=s CASE=c` shows what the ranks
 * printed. */
void tensor_print(const char *name, Tensor *x, const Mesh *mesh);

/* ---- Unfinished labs -------------------------------------------------------------------------------------- */

/** Ends the case because this part of the lab is still to do. TODO(n) calls it with the name of
 *  the function. */
_Noreturn void todo(int balise, const char *function);
/** Marks a part of the lab that is still to do. */
#define TODO(balise) todo((balise), __func__)
