/* BERT as its authors published it and as Hugging Face implements it (Devlin et al.,
   arXiv:1810.04805): norms after the residual additions, biases, token types. Its head is that of a
   classifier, with a pooler, or that of its pretraining (TASK=mlm), tied to the embedding. */
#include <string.h>

#include "autograd/operations.h"
#include "model/biased.h"
#include "model/language.h"

typedef struct RealBertEmbedding {
    Embedding *tokens; /* of a classifier, split as lab 3 splits it; otherwise NULL */
    Tensor *table;     /* [V,H] of a masked model, split along V; otherwise NULL */
    Tensor *positions; /* [positions,H] */
    Tensor *types;     /* [types,H]; the kit uses only type 0 */
    Norm norm;
    Dropout *dropout;
} RealBertEmbedding;

typedef struct RealBertBlock {
    AttentionLayers attention;
    FeedForwardLayers feed_forward;
    Norm norm[2];
    Dropout *dropout[2];
} RealBertBlock;

typedef struct RealBertHead {
    Tensor *pooler[2], *classifier[2]; /* weight and bias each */
    Dropout *dropout;
} RealBertHead;

/* BertLMPredictionHead of Hugging Face's library. */
typedef struct MaskedHead {
    Tensor *transform[2]; /* weight and bias */
    Norm norm;
    ColumnParallelLinear decoder; /* its weight is the embedding's table */
} MaskedHead;

static Tensor *table_new(Builder *b, int rows, int columns)
{
    return parameter_with(b, "weight", SHAPE(rows, columns), whole(), EMBEDDING_WEIGHT);
}

static void *real_bert_embedding_new(Builder *b, const TransformerConfig *c)
{
    RealBertEmbedding *layer = NEW(b, RealBertEmbedding);
    Builder *tokens = for_embedding(within(b, "embedding"));
    if (c->architecture->is_masked)
        layer->table = vocabulary_embedding_new(tokens, c, vocabulary_twin(b, c));
    else
        layer->tokens = embedding_new(tokens, c->vocabulary, c->hidden);
    layer->positions = table_new(within(b, "positions"), c->positions, c->hidden);
    layer->types = table_new(within(b, "token_types"), c->token_types, c->hidden);
    layer->norm = norm_new(within(b, "embedding_norm"), c);
    layer->dropout = dropout_new(within(b, "embedding_dropout"), (float)c->dropout);
    return layer;
}

static Tensor *look_up(const RealBertEmbedding *layer, Tensor *ids, const Mesh *mesh)
{
    return layer->table ? vocabulary_embedding(layer->table, ids, mesh)
                        : embedding_forward(layer->tokens, ids, mesh);
}

enum { PADDING_ID = 0 }; /* the token that fills up rows */

/* In Hugging Face's library, the vector of the padding token gets no gradient (padding_idx). So it
   is looked up with recording off. In a masked model, it still gets one from the decoder. */
static Tensor *token_vectors(const RealBertEmbedding *layer, Tensor *ids, const Mesh *mesh)
{
    Tensor *others = tape_host_tensor(ids->tape, INT32, ids->shape, whole());
    bool has_padding = false; /* the rows of a text have none, and need only one exchange */
    for (int64_t i = 0; i < tensor_count(ids); i++) {
        has_padding |= ints(ids)[i] == PADDING_ID;
        ints(others)[i] = ints(ids)[i] == PADDING_ID ? NO_ID : ints(ids)[i];
    }
    if (!has_padding)
        return look_up(layer, ids, mesh);
    const bool recording = tape_record(ids->tape, false);
    Tensor *pads = look_up(layer, ids_between(ids, PADDING_ID, PADDING_ID + 1), mesh);
    tape_record(ids->tape, recording);
    return add(look_up(layer, others, mesh), pads);
}

/* The vector of token type 0 for each token. */
static Tensor *type_vectors(const RealBertEmbedding *layer, const Tensor *ids)
{
    Tensor *zeros = tape_host_tensor(ids->tape, INT32, ids->shape, whole());
    memset(ints(zeros), 0, (size_t)tensor_count(zeros) * sizeof *ints(zeros));
    return lookup(zeros, layer->types);
}

static Tensor *real_bert_embed(const void *embedding, Tensor *ids, const Mesh *mesh)
{
    const RealBertEmbedding *layer = embedding;
    Tensor *x = add(token_vectors(layer, ids, mesh), type_vectors(layer, ids));
    x = norm_forward(&layer->norm, add_positions(x, layer->positions));
    return dropout(layer->dropout, x);
}

static void *real_bert_block_new(Builder *b, const TransformerConfig *c)
{
    RealBertBlock *block = NEW(b, RealBertBlock);
    block->attention = attention_layers_new(within(b, "attention"), c);
    block->dropout[0] = dropout_new(within(b, "dropout1"), (float)c->dropout);
    block->norm[0] = norm_new(within(b, "norm1"), c);
    block->feed_forward = feed_forward_layers_new(within(b, "feed_forward"), c);
    block->dropout[1] = dropout_new(within(b, "dropout2"), (float)c->dropout);
    block->norm[1] = norm_new(within(b, "norm2"), c);
    return block;
}

static Tensor *attend(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const AttentionLayers *layers = layer;
    const Projections p = query_key_value_forward(&layers->query_key_value, x, mesh);
    Tensor *y = attention(p.q, p.k, p.v, mask, layers->heads, layers->factor);
    return row_parallel_linear_forward(&layers->output, y, mesh);
}

static Tensor *feed(const FeedForwardLayers *layers, Tensor *x, const Mesh *mesh)
{
    Tensor *inner = gelu(column_parallel_linear_forward(&layers->up, x, mesh));
    return row_parallel_linear_forward(&layers->down, inner, mesh);
}

static Tensor *real_bert_block(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const RealBertBlock *block = layer;
    Tensor *y = attention_segment(attend, &block->attention, x, mask, mesh);
    y = dropout(block->dropout[0], y);
    x = norm_forward(&block->norm[0], add(x, y));
    y = dropout(block->dropout[1], feed(&block->feed_forward, x, mesh));
    return norm_forward(&block->norm[1], add(x, y));
}

static void linear_with_bias_new(Builder *b, int in, int out, Tensor *weight_and_bias[2])
{
    weight_and_bias[0] = table_new(b, out, in);
    weight_and_bias[1] = parameter_with(b, "bias", SHAPE(out), whole(), ZEROS);
}

static void *real_bert_head_new(Builder *b, const TransformerConfig *c, const void *embedding)
{
    RealBertHead *head = NEW(b, RealBertHead);
    linear_with_bias_new(within(b, "pooler"), c->hidden, c->hidden, head->pooler);
    linear_with_bias_new(within(b, "classifier"), c->hidden, c->classes, head->classifier);
    head->dropout = dropout_new(within(b, "classifier_dropout"), (float)c->dropout);
    return head;
}

static Tensor *real_bert_head(const void *layer, Tensor *x, const Mesh *mesh)
{
    const RealBertHead *head = layer;
    x = tanh_of(linear_with_bias(first_token(x), head->pooler[0], head->pooler[1]));
    return linear_with_bias(dropout(head->dropout, x), head->classifier[0], head->classifier[1]);
}

const Architecture architecture_real_bert = {.name = "BERT (post-LN)",
                                             .check = feed_forward_layers_check,
                                             .embedding_new = real_bert_embedding_new,
                                             .embed = real_bert_embed,
                                             .block_new = real_bert_block_new,
                                             .block = real_bert_block,
                                             .head_new = real_bert_head_new,
                                             .head = real_bert_head,
                                             .loss = classifier_loss,
                                             .other_task = &architecture_masked_real_bert};

/* ---- pretraining ----------------------------------------------------------------------------------------- */

static void *masked_head_new(Builder *b, const TransformerConfig *c, const void *embedding)
{
    const RealBertEmbedding *held = embedding;
    MaskedHead *head = NEW(b, MaskedHead);
    linear_with_bias_new(within(b, "transform"), c->hidden, c->hidden, head->transform);
    head->norm = norm_new(within(b, "transform_norm"), c);
    head->decoder.weight = vocabulary_head_new(b, c, held ? held->table : NULL);
    head->decoder.bias =
        parameter_with(within(b, "decoder"), "bias", SHAPE(c->vocabulary), shard(0), ZEROS);
    return head;
}

static Tensor *masked_head(const void *layer, Tensor *x, const Mesh *mesh)
{
    const MaskedHead *head = layer;
    x = gelu(linear_with_bias(x, head->transform[0], head->transform[1]));
    return column_parallel_linear_forward(&head->decoder, norm_forward(&head->norm, x), mesh);
}

const Architecture architecture_masked_real_bert = {.name = "masked BERT (post-LN)",
                                                    .is_language = true,
                                                    .is_masked = true,
                                                    .check = feed_forward_layers_check,
                                                    .embedding_new = real_bert_embedding_new,
                                                    .embed = real_bert_embed,
                                                    .block_new = real_bert_block_new,
                                                    .block = real_bert_block,
                                                    .head_new = masked_head_new,
                                                    .head = masked_head,
                                                    .loss = language_loss,
                                                    .other_task = &architecture_real_bert};
