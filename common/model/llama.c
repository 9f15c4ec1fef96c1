/* LLaMA (Touvron et al., arXiv:2302.13971), split as in Megatron-LM: heads and columns of the
   feed-forward layers over the tp ranks, one all-reduce after each of the two halves of a block. */
#include <math.h>

#include "autograd/operations.h"
#include "model/language.h"

typedef struct RmsNorm {
    Tensor *weight; /* [H] */
    double epsilon;
} RmsNorm;

typedef struct AttentionLinear {
    Tensor *weight, *bias; /* [out,in]; [out], or NULL */
} AttentionLinear;

typedef struct LlamaAttention {
    AttentionLinear query, key, value, output; /* [H,H], [K*D,H] twice, [H,H] for K heads of keys */
    int heads, kv_heads;                       /* of this rank */
    RotaryAngles angles;
    KeyValueCache cache;
} LlamaAttention;

typedef struct LlamaFeedForward {
    Tensor *gate, *up, *down; /* [F,H] twice, [H,F] */
} LlamaFeedForward;

typedef struct LlamaBlock {
    RmsNorm norm1, norm2;
    LlamaAttention attention;
    LlamaFeedForward feed_forward;
} LlamaBlock;

typedef struct LlamaHead {
    RmsNorm norm;
    Tensor *table; /* [V,H] the embedding's, unless the head has its own */
} LlamaHead;

static RmsNorm rms_norm_new(Builder *b, const TransformerConfig *c)
{
    return (RmsNorm){parameter_with(b, "weight", SHAPE(c->hidden), whole(), ONES), c->epsilon};
}

static Tensor *normalise(const RmsNorm *norm, Tensor *x)
{
    return rms_norm(x, norm->weight, norm->epsilon);
}

/* ---- attention ------------------------------------------------------------------------------------------- */

static Tensor *weight_new(Builder *b, const char *name, int out, int in, Placement placement)
{
    return parameter_with(within(b, name), "weight", SHAPE(out, in), placement, EMBEDDING_WEIGHT);
}

static AttentionLinear attention_linear_new(Builder *b, const char *name, int out, int in,
                                            Placement placement, bool has_bias)
{
    AttentionLinear layer = {.weight = weight_new(b, name, out, in, placement)};
    if (has_bias)
        layer.bias = zero_parameter(within(b, name), "bias", SHAPE(out),
                                    placement.dim == 0 ? placement : whole());
    return layer;
}

static Tensor *project(const AttentionLinear *layer, Tensor *x)
{
    return layer->bias ? linear_with_bias(x, layer->weight, layer->bias) : linear(x, layer->weight);
}

static LlamaAttention attention_layer(Builder *b, const TransformerConfig *c)
{
    const int tp = b->mesh->tp_degree, width = c->hidden / c->heads * c->kv_heads;
    return (LlamaAttention){
        .query = attention_linear_new(b, "query", c->hidden, c->hidden, shard(0), c->qkv_bias),
        .key = attention_linear_new(b, "key", width, c->hidden, shard(0), c->qkv_bias),
        .value = attention_linear_new(b, "value", width, c->hidden, shard(0), c->qkv_bias),
        .output = attention_linear_new(b, "output", c->hidden, c->hidden, shard(1), c->output_bias),
        .heads = c->heads / tp,
        .kv_heads = c->kv_heads / tp,
        .angles = c->rotary,
        .cache = key_value_cache_new(b, c, width / tp)};
}

static Tensor *attend(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const LlamaAttention *a = layer;
    const int64_t past = x->tape->batch.past;
    const int each = a->heads / a->kv_heads; /* query heads that share a key head */
    x = duplication(x, mesh);
    Tensor *q = rotary(project(&a->query, x), a->heads, past, a->angles);
    Tensor *k = rotary(project(&a->key, x), a->kv_heads, past, a->angles);
    Tensor *v = project(&a->value, x);
    key_value_cache_add(&a->cache, &k, &v);
    k = repeat_heads(k, a->kv_heads, each);
    v = repeat_heads(v, a->kv_heads, each);
    const int64_t head_size = tensor_size(q, LAST) / a->heads;
    Tensor *y = attention_causal(q, k, v, mask, a->heads, 1 / sqrtf((float)head_size));
    Tensor *sum = all_reduce(linear(y, a->output.weight), mesh);
    return a->output.bias ? add_bias(sum, a->output.bias) : sum;
}

/* ---- the feed-forward layers ----------------------------------------------------------------------------- */

static LlamaFeedForward feed_forward_layer(Builder *b, const TransformerConfig *c)
{
    return (LlamaFeedForward){.gate = weight_new(b, "gate", c->inner, c->hidden, shard(0)),
                              .up = weight_new(b, "up", c->inner, c->hidden, shard(0)),
                              .down = weight_new(b, "down", c->hidden, c->inner, shard(1))};
}

static Tensor *feed(const LlamaFeedForward *f, Tensor *x, const Mesh *mesh)
{
    x = duplication(x, mesh);
    Tensor *inner = swiglu(linear(x, f->gate), linear(x, f->up));
    return all_reduce(linear(inner, f->down), mesh);
}

/* ---- the parts of the transformer ------------------------------------------------------------------------ */

static bool llama_check(const TransformerConfig *c, int tp, Problem *problem)
{
    if (c->kv_heads < 1 || c->heads % c->kv_heads)
        return problem_set(problem, NULL, "choose a number of key-value heads that divides HEADS",
                           "%d heads cannot share %d key-value heads", c->heads, c->kv_heads);
    if (c->kv_heads % tp)
        return problem_set(
            problem, NULL,
            "each rank takes the same number of key-value heads: choose a TP that divides their "
            "number",
            "%d key-value heads cannot be split evenly over %d ranks", c->kv_heads, tp);
    if (c->hidden / c->heads % 2)
        return problem_set(
            problem, NULL, "choose HIDDEN_DIM and HEADS so that HIDDEN_DIM / HEADS is even",
            "rotary positions rotate pairs of numbers, but a head has %d", c->hidden / c->heads);
    if (c->inner % tp)
        return problem_set(problem, NULL, "choose a TP that divides their number",
                           "the %d columns of the feed-forward layers cannot be split evenly over "
                           "%d ranks",
                           c->inner, tp);
    return true;
}

static void *llama_embedding_new(Builder *b, const TransformerConfig *c)
{
    return vocabulary_embedding_new(within(b, "embedding"), c, vocabulary_twin(b, c));
}

static Tensor *llama_embed(const void *embedding, Tensor *ids, const Mesh *mesh)
{
    return vocabulary_embedding((Tensor *)embedding, ids, mesh);
}

static void *llama_block_new(Builder *b, const TransformerConfig *c)
{
    LlamaBlock *block = NEW(b, LlamaBlock);
    block->norm1 = rms_norm_new(within(b, "norm1"), c);
    block->attention = attention_layer(within(b, "attention"), c);
    block->norm2 = rms_norm_new(within(b, "norm2"), c);
    block->feed_forward = feed_forward_layer(within(b, "feed_forward"), c);
    return block;
}

static Tensor *llama_block(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const LlamaBlock *block = layer;
    Tensor *y =
        attention_segment(attend, &block->attention, normalise(&block->norm1, x), mask, mesh);
    x = add(x, y);
    return add(x, feed(&block->feed_forward, normalise(&block->norm2, x), mesh));
}

static void *llama_head_new(Builder *b, const TransformerConfig *c, const void *embedding)
{
    LlamaHead *head = NEW(b, LlamaHead);
    head->norm = rms_norm_new(within(b, "norm"), c);
    head->table = vocabulary_head_new(b, c, embedding);
    return head;
}

static Tensor *llama_head(const void *layer, Tensor *x, const Mesh *mesh)
{
    const LlamaHead *head = layer;
    return vocabulary_logits(head->table, normalise(&head->norm, x), mesh);
}

const Architecture architecture_llama = {.name = "LLaMA",
                                         .is_language = true,
                                         .check = llama_check,
                                         .embedding_new = llama_embedding_new,
                                         .embed = llama_embed,
                                         .block_new = llama_block_new,
                                         .block = llama_block,
                                         .head_new = llama_head_new,
                                         .head = llama_head,
                                         .loss = language_loss};
