/* GPT-2 (Radford et al., 2019), split as in Megatron-LM. */
#include <math.h>

#include "autograd/operations.h"
#include "model/biased.h"
#include "model/language.h"

typedef struct Gpt2Embedding {
    Tensor *tokens;    /* [V,H] split along V */
    Tensor *positions; /* [positions,H] */
    Dropout *dropout;
} Gpt2Embedding;

typedef struct Gpt2Block {
    Norm norm[2];
    AttentionLayers attention;
    FeedForwardLayers feed_forward;
    KeyValueCache cache;
    Dropout *dropout[2];
} Gpt2Block;

typedef struct Gpt2Head {
    Norm norm;
    Tensor *table; /* [V,H] the embedding's, unless the head has its own */
} Gpt2Head;

static void *gpt2_embedding_new(Builder *b, const TransformerConfig *c)
{
    Gpt2Embedding *layer = NEW(b, Gpt2Embedding);
    layer->tokens = vocabulary_embedding_new(within(b, "embedding"), c, vocabulary_twin(b, c));
    layer->positions = parameter_with(within(b, "positions"), "weight",
                                      SHAPE(c->positions, c->hidden), whole(), EMBEDDING_WEIGHT);
    layer->dropout = dropout_new(within(b, "embedding_dropout"), (float)c->dropout);
    return layer;
}

static Tensor *gpt2_embed(const void *embedding, Tensor *ids, const Mesh *mesh)
{
    const Gpt2Embedding *layer = embedding;
    Tensor *x = vocabulary_embedding(layer->tokens, ids, mesh);
    return dropout(layer->dropout, add_positions(x, layer->positions));
}

/* A weight whose result is added to x starts smaller, so x does not grow with the number of such
   additions (Radford et al., section 2.3). */
static void begin_smaller(const Tensor *weight, const TransformerConfig *c)
{
    weight->parameter->deviation /= sqrt(2.0 * c->layers);
}

static void *gpt2_block_new(Builder *b, const TransformerConfig *c)
{
    Gpt2Block *block = NEW(b, Gpt2Block);
    block->norm[0] = norm_new(within(b, "norm1"), c);
    block->attention = attention_layers_new(within(b, "attention"), c);
    block->cache = key_value_cache_new(b, c, c->hidden / b->mesh->tp_degree);
    block->dropout[0] = dropout_new(within(b, "dropout1"), (float)c->dropout);
    block->norm[1] = norm_new(within(b, "norm2"), c);
    block->feed_forward = feed_forward_layers_new(within(b, "feed_forward"), c);
    block->dropout[1] = dropout_new(within(b, "dropout2"), (float)c->dropout);
    begin_smaller(block->attention.output.weight, c);
    begin_smaller(block->feed_forward.down.weight, c);
    return block;
}

static Tensor *attend(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const Gpt2Block *block = layer;
    const AttentionLayers *layers = &block->attention;
    Projections p = query_key_value_forward(&layers->query_key_value, x, mesh);
    key_value_cache_add(&block->cache, &p.k, &p.v);
    Tensor *y = attention_causal(p.q, p.k, p.v, mask, layers->heads, layers->factor);
    return row_parallel_linear_forward(&layers->output, y, mesh);
}

static Tensor *feed(const FeedForwardLayers *layers, Tensor *x, const Mesh *mesh)
{
    Tensor *inner = gelu_tanh(column_parallel_linear_forward(&layers->up, x, mesh));
    return row_parallel_linear_forward(&layers->down, inner, mesh);
}

static Tensor *gpt2_block(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const Gpt2Block *block = layer;
    Tensor *y = attention_segment(attend, block, norm_forward(&block->norm[0], x), mask, mesh);
    x = add(x, dropout(block->dropout[0], y));
    y = feed(&block->feed_forward, norm_forward(&block->norm[1], x), mesh);
    return add(x, dropout(block->dropout[1], y));
}

static void *gpt2_head_new(Builder *b, const TransformerConfig *c, const void *embedding)
{
    const Gpt2Embedding *held = embedding;
    Gpt2Head *head = NEW(b, Gpt2Head);
    head->norm = norm_new(within(b, "norm"), c);
    head->table = vocabulary_head_new(b, c, held ? held->tokens : NULL);
    return head;
}

static Tensor *gpt2_head(const void *layer, Tensor *x, const Mesh *mesh)
{
    const Gpt2Head *head = layer;
    return vocabulary_logits(head->table, norm_forward(&head->norm, x), mesh);
}

const Architecture architecture_gpt2 = {.name = "GPT-2",
                                        .is_language = true,
                                        .check = feed_forward_layers_check,
                                        .embedding_new = gpt2_embedding_new,
                                        .embed = gpt2_embed,
                                        .block_new = gpt2_block_new,
                                        .block = gpt2_block,
                                        .head_new = gpt2_head_new,
                                        .head = gpt2_head,
                                        .loss = language_loss};
