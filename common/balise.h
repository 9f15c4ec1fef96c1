/* balise.h: every word that a lab is written in.
 *
 * Letters in shapes:  B batch   S sequence   H hidden   F feed-forward   V vocabulary   A heads   D head size
 *                     tp ranks that split one model    dp replicas of the model
 *
 * Nothing is freed in a lab: tensors belong to the tape, layers to the builder, groups to the mesh.
 * A function that returns a Tensor never changes its arguments; what it returns may share their memory.
 * Any misuse ends the run with the line in your file, the shapes and placements, and a HINT.
 */
#ifndef BALISE_H
#define BALISE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Tensor Tensor;
typedef struct Group Group;

enum { LAST = -1 }; /* the last dimension of a tensor */

/* ---- Who talks to whom ------------------------------------------------------------------------------------ */

typedef struct Mesh {
    Group *world;           /* every rank of the run                                                             */
    Group *tp;              /* the ranks that split one model: made in balise 8, NULL before                     */
    Group *dp;              /* the ranks that hold this shard in every replica: made in balise 10, NULL before   */
    int tp_rank, tp_degree; /* place in the tp group and its size; before balise 8 those of the world            */
    int dp_rank, dp_degree; /* place in the dp group and its size; before balise 10: 0 and 1                     */
} Mesh;

int group_rank(const Group *group);
int group_size(const Group *group);
Group *group_split(Group *group, int color, int key); /* ranks of one color form a group, ordered by key         */

/* ---- Collectives: every rank of the group calls them, in the same order. Values only, nothing on the tape. -- */

Tensor *group_all_reduce(Group *group, Tensor *x);              /* the sum of every rank's x                     */
Tensor *group_all_gather(Group *group, Tensor *x, int dim);     /* every rank's x, one after the other along dim */
Tensor *group_reduce_scatter(Group *group, Tensor *x, int dim); /* this rank's part of the sum                   */
Tensor *group_broadcast(Group *group, Tensor *x, int root);
void group_sum(Group *group, double *values, int count);        /* a few numbers, in place                       */
Tensor *part(Tensor *x, int dim, int k, int n);                 /* part k of n equal parts of x along dim        */

/* ---- Balises 1 and 9: f, g and the gather. You write the pairs; the runtime puts them on the tape. ---------- */

Tensor *duplication(Tensor *x, const Mesh *mesh);         /* f:  copy of x, whose gradients are still partial   */
Tensor *all_reduce(Tensor *x, const Mesh *mesh);          /* g:  partial sums -> the sum, whole on every rank   */
Tensor *all_gather(Tensor *x, int dim, const Mesh *mesh); /*     shards       -> the whole, on every rank       */

Tensor *duplication_forward(Tensor *x, const Mesh *mesh);
Tensor *duplication_backward(Tensor *dy, const Mesh *mesh);
Tensor *all_reduce_forward(Tensor *x, const Mesh *mesh);
Tensor *all_reduce_backward(Tensor *dy, const Mesh *mesh);
Tensor *all_gather_forward(Tensor *x, int dim, const Mesh *mesh);
Tensor *all_gather_backward(Tensor *dy, int dim, const Mesh *mesh);

/* ---- Operations: each knows its backward ------------------------------------------------------------------- */

Tensor *linear(Tensor *x, Tensor *weight);                 /* [..,in], [out,in] -> [..,out]     y = x W^T        */
Tensor *lookup(Tensor *ids, Tensor *weight);               /* [B,S], [V,H] -> [B,S,H]; NO_ID -> a row of zeros   */
Tensor *ids_between(Tensor *ids, int first, int end);      /* id - first where first <= id < end, else NO_ID     */
Tensor *gelu(Tensor *x);
Tensor *add(Tensor *x, Tensor *y);
Tensor *attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor);
                                                           /* [B,S,heads*D] each -> the same: softmax(factor q k^T) v */
Tensor *first_token(Tensor *x);                            /* [B,S,H] -> [B,H]: the row of [CLS]                 */
int64_t tensor_size(const Tensor *x, int i);
void scale(Tensor *x, float factor);                       /* in place, not on the tape                          */

/* ---- Parameters and layers --------------------------------------------------------------------------------- */

typedef struct Builder {  /* owns the layers and parameters that are made with it */
    const Mesh *mesh;
} Builder;

typedef struct Shape { int rank; int64_t size[4]; } Shape;
#define SHAPE(...) ((Shape){ sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), { __VA_ARGS__ } })

typedef struct Placement { int kind, dim; } Placement;
Placement whole(void);         /* every tp rank holds all of it                                                  */
Placement shard(int dim);      /* cut along dim into tp_degree parts, in the order of tp_rank                    */
Placement undecided(int balise); /* in a skeleton: yours to choose                                               */

/* shape is that of the undivided parameter: its initial values depend on its name, not on the layout. */
Tensor *parameter(Builder *b, const char *name, Shape shape, Placement placement);
int shard_begin(const Tensor *parameter); /* first row or column of the undivided parameter that is held here    */
Builder *within(Builder *b, const char *name);
void *new_layer(Builder *b, int64_t bytes);
#define NEW(b, Type) ((Type *)new_layer((b), sizeof(Type)))

typedef struct Linear Linear;          /* given: whole on every rank, no communication                           */
Linear *linear_new(Builder *b, int in, int out);
Tensor *linear_forward(const Linear *layer, Tensor *x);

typedef struct LayerNorm LayerNorm;    /* given */
LayerNorm *layer_norm_new(Builder *b, int size);
Tensor *layer_norm(const LayerNorm *layer, Tensor *x);

typedef struct Dropout Dropout;        /* given: the same mask at every layout, sharded or not */
Dropout *dropout_new(Builder *b, float probability);
Tensor *dropout(const Dropout *layer, Tensor *x);

/* ---- Balises 2 to 7: the layers ---------------------------------------------------------------------------- */

typedef struct ColWiseLinear ColWiseLinear;
ColWiseLinear *col_wise_linear_new(Builder *b, int in, int out);
Tensor *col_wise_linear_forward(const ColWiseLinear *layer, Tensor *x, const Mesh *mesh);

typedef struct Embedding Embedding;
Embedding *embedding_new(Builder *b, int vocabulary, int hidden);
Tensor *embedding_forward(const Embedding *layer, Tensor *ids, const Mesh *mesh);

typedef struct MultiHeadSelfAttention MultiHeadSelfAttention;
MultiHeadSelfAttention *attention_new(Builder *b, int hidden, int heads);
Tensor *attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask, const Mesh *mesh);

typedef struct FeedForward FeedForward;
FeedForward *feed_forward_new(Builder *b, int in, int inner, int out, float p);
Tensor *feed_forward_forward(const FeedForward *layer, Tensor *x, const Mesh *mesh);

typedef struct ColRowLinearPair ColRowLinearPair;
ColRowLinearPair *col_row_linear_pair_new(Builder *b, int in, int inner, int out, float p);
Tensor *col_row_linear_pair_forward(const ColRowLinearPair *layer, Tensor *x, const Mesh *mesh);

typedef struct Block Block;
Block *block_new(Builder *b, int hidden, int heads, float p);
Tensor *block_forward(const Block *layer, Tensor *x, Tensor *mask, const Mesh *mesh);

typedef struct Classifier Classifier;
Classifier *classifier_new(Builder *b, int hidden, int classes, float p);
Tensor *classifier_forward(const Classifier *layer, Tensor *x, const Mesh *mesh);

/* ---- Balises 8 and 10: the grid ---------------------------------------------------------------------------- */

void mesh_init_tp(Mesh *mesh, int tp); /* sets tp, tp_rank, tp_degree; tp divides the world (checked before)     */
void mesh_init_dp(Mesh *mesh);         /* sets dp, dp_rank, dp_degree; called after mesh_init_tp                 */

/* ---- Balise 11: data parallelism --------------------------------------------------------------------------- */

typedef enum Tail { EVERY_ROW_ONCE, PAD, DROP } Tail; /* rows that do not fill a round: keep, repeat the first, drop */
typedef struct Sampler {
    int64_t rows;   /* of the data                                                                               */
    uint64_t seed;
    Tail tail;      /* EVERY_ROW_ONCE in evaluation: some replicas then read one row less                        */
    int64_t *order; /* room for [rows]: all rows in this epoch's order                                           */
    int64_t *mine;  /* room for [rows/dp, rounded up]: the rows that this replica reads, in order                */
} Sampler;
int64_t sampler_set_epoch(Sampler *sampler, int64_t epoch, const Mesh *mesh); /* fills mine; returns its length  */
void permutation(int64_t *order, int64_t rows, uint64_t seed, int64_t epoch); /* 0..rows-1, shuffled             */

typedef struct Pending Pending;
typedef struct Bucket {    /* the gradients of a few neighbouring parameters, one after the other in memory       */
    Tensor *gradients;
    Pending *pending;      /* yours: what start leaves for finish                                                */
} Bucket;
Pending *group_all_reduce_start(Group *group, Tensor *x); /* in place; x is not to be touched before the wait     */
void pending_wait(Pending *pending);

void bucket_ready(Bucket *bucket, const Mesh *mesh);                /* backward has just filled this bucket       */
void buckets_finish(Bucket *buckets, int count, const Mesh *mesh);  /* called once before the optimiser's step    */

typedef struct Metrics { double loss_sum, correct, count; } Metrics;
void metrics_synchronise(Metrics *metrics, const Mesh *mesh);

/* ---- When the words above are not enough ------------------------------------------------------------------- */

typedef struct Op { /* your own differentiable operation */
    const char *name;
    Tensor *(*forward)(Tensor *x, const Mesh *mesh);
    Tensor *(*backward)(Tensor *dy, const Mesh *mesh);
} Op;
Tensor *apply(const Op *op, Tensor *x, const Mesh *mesh);
float *tensor_data(Tensor *x);       /* x's numbers, row by row, ready to read and write until the next word.
                                        What x is (whole, shard, partial) is then yours to know, or to say:      */
Tensor *placed(Tensor *x, Placement placement);
Tensor *tensor_copy(Tensor *x);
int64_t tensor_count(const Tensor *x);
/* #include "balise_mpi.h" gives MPI_Comm group_comm(const Group *group) for calling MPI yourself. */

/* ---- An exercise that is still to do ----------------------------------------------------------------------- */
_Noreturn void todo(int balise, const char *function);
#define TODO(balise) todo((balise), __func__)

#endif
