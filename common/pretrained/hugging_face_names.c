/* The names of Hugging Face's tensors. */
#include <stddef.h>
#include <string.h>

#include "pretrained/hugging_face.h"

/* The kit's parameter, Hugging Face's tensor, its shape, and further members. */
/* clang-format off */
#define NAME(in_kit, in_theirs, letters, ...) \
    {.kit = (in_kit), .theirs = (in_theirs), .shape = (letters), ##__VA_ARGS__}
/* clang-format on */

/* Marks one of three consecutive names: those of a parameter's thirds, in order. */
#define THIRD(number) .in_thirds = true, .third = (number)

/* Marks a name of which only models with this flag have the tensor. */
#define ONLY_WITH(member) .flag = offsetof(TransformerConfig, member)

/* ---- BERT ---------------------------------------------------------------------------------------------- */

#define CLASSIFIER    "BertForSequenceClassification"
#define MASKED        "BertForMaskedLM"
#define HEAD_OF(name) .head_of = (name), .has_no_prefix = true

static const HuggingFaceName bert_once[] = {
    NAME("embedding.weight", "embeddings.word_embeddings.weight", "VH"),
    NAME("positions.weight", "embeddings.position_embeddings.weight", "PH"),
    NAME("token_types.weight", "embeddings.token_type_embeddings.weight", "TH"),
    NAME("embedding_norm.weight", "embeddings.LayerNorm.weight", "H"),
    NAME("embedding_norm.bias", "embeddings.LayerNorm.bias", "H"),
    NAME("pooler.weight", "pooler.dense.weight", "HH", .head_of = CLASSIFIER),
    NAME("pooler.bias", "pooler.dense.bias", "H", .head_of = CLASSIFIER),
    NAME("classifier.weight", "classifier.weight", "CH", HEAD_OF(CLASSIFIER)),
    NAME("classifier.bias", "classifier.bias", "C", HEAD_OF(CLASSIFIER)),
    NAME("transform.weight", "cls.predictions.transform.dense.weight", "HH", HEAD_OF(MASKED)),
    NAME("transform.bias", "cls.predictions.transform.dense.bias", "H", HEAD_OF(MASKED)),
    NAME("transform_norm.weight", "cls.predictions.transform.LayerNorm.weight", "H",
         HEAD_OF(MASKED)),
    NAME("transform_norm.bias", "cls.predictions.transform.LayerNorm.bias", "H", HEAD_OF(MASKED)),
    NAME("decoder.bias", "cls.predictions.bias", "V", HEAD_OF(MASKED)),
    NAME("head.weight", "cls.predictions.decoder.weight", "VH", HEAD_OF(MASKED),
         ONLY_WITH(own_head)),
    {.kit = NULL}};

static const HuggingFaceName bert_in_blocks[] = {
    NAME("attention.query_key_value.weight", "attention.self.query.weight", "HH", THIRD(0)),
    NAME("attention.query_key_value.weight", "attention.self.key.weight", "HH", THIRD(1)),
    NAME("attention.query_key_value.weight", "attention.self.value.weight", "HH", THIRD(2)),
    NAME("attention.query_key_value.bias", "attention.self.query.bias", "H", THIRD(0)),
    NAME("attention.query_key_value.bias", "attention.self.key.bias", "H", THIRD(1)),
    NAME("attention.query_key_value.bias", "attention.self.value.bias", "H", THIRD(2)),
    NAME("attention.output.weight", "attention.output.dense.weight", "HH"),
    NAME("attention.output.bias", "attention.output.dense.bias", "H"),
    NAME("norm1.weight", "attention.output.LayerNorm.weight", "H"),
    NAME("norm1.bias", "attention.output.LayerNorm.bias", "H"),
    NAME("feed_forward.up.weight", "intermediate.dense.weight", "FH"),
    NAME("feed_forward.up.bias", "intermediate.dense.bias", "F"),
    NAME("feed_forward.down.weight", "output.dense.weight", "HF"),
    NAME("feed_forward.down.bias", "output.dense.bias", "H"),
    NAME("norm2.weight", "output.LayerNorm.weight", "H"),
    NAME("norm2.bias", "output.LayerNorm.bias", "H"),
    {.kit = NULL}};

static const char *const bert_unused[] = {"cls.*", "*position_ids", NULL};

static const HuggingFaceModel bert = {.type = "bert",
                                      .architecture = "BERT (post-LN)",
                                      .library_class = CLASSIFIER,
                                      .prefix = "bert.",
                                      .embedding = "embeddings.word_embeddings.weight",
                                      .block = "encoder.layer.",
                                      .once = bert_once,
                                      .in_blocks = bert_in_blocks,
                                      .unused = bert_unused};

static const HuggingFaceModel masked_bert = {.type = "bert",
                                             .architecture = "masked BERT (post-LN)",
                                             .library_class = MASKED,
                                             .prefix = "bert.",
                                             .embedding = "embeddings.word_embeddings.weight",
                                             .block = "encoder.layer.",
                                             .once = bert_once,
                                             .in_blocks = bert_in_blocks,
                                             .unused = bert_unused};

/* ---- GPT-2 --------------------------------------------------------------------------------------------- */

static const HuggingFaceName gpt2_once[] = {
    NAME("embedding.weight", "wte.weight", "VH"),
    NAME("positions.weight", "wpe.weight", "PH"),
    NAME("norm.weight", "ln_f.weight", "H"),
    NAME("norm.bias", "ln_f.bias", "H"),
    NAME("head.weight", "lm_head.weight", "VH", .has_no_prefix = true, ONLY_WITH(own_head)),
    {.kit = NULL}};

static const HuggingFaceName gpt2_in_blocks[] = {
    NAME("norm1.weight", "ln_1.weight", "H"),
    NAME("norm1.bias", "ln_1.bias", "H"),
    NAME("attention.query_key_value.weight", "attn.c_attn.weight", "H3", THIRD(0),
         .is_transposed = true),
    NAME("attention.query_key_value.weight", "attn.c_attn.weight", "H3", THIRD(1),
         .is_transposed = true),
    NAME("attention.query_key_value.weight", "attn.c_attn.weight", "H3", THIRD(2),
         .is_transposed = true),
    NAME("attention.query_key_value.bias", "attn.c_attn.bias", "3", THIRD(0)),
    NAME("attention.query_key_value.bias", "attn.c_attn.bias", "3", THIRD(1)),
    NAME("attention.query_key_value.bias", "attn.c_attn.bias", "3", THIRD(2)),
    NAME("attention.output.weight", "attn.c_proj.weight", "HH", .is_transposed = true),
    NAME("attention.output.bias", "attn.c_proj.bias", "H"),
    NAME("norm2.weight", "ln_2.weight", "H"),
    NAME("norm2.bias", "ln_2.bias", "H"),
    NAME("feed_forward.up.weight", "mlp.c_fc.weight", "HF", .is_transposed = true),
    NAME("feed_forward.up.bias", "mlp.c_fc.bias", "F"),
    NAME("feed_forward.down.weight", "mlp.c_proj.weight", "FH", .is_transposed = true),
    NAME("feed_forward.down.bias", "mlp.c_proj.bias", "H"),
    {.kit = NULL}};

static const char *const gpt2_unused[] = {"lm_head.weight", "*.attn.bias", "*.attn.masked_bias",
                                          NULL};

static const HuggingFaceModel gpt2 = {.type = "gpt2",
                                      .architecture = "GPT-2",
                                      .library_class = "GPT2LMHeadModel",
                                      .prefix = "transformer.",
                                      .embedding = "wte.weight",
                                      .block = "h.",
                                      .once = gpt2_once,
                                      .in_blocks = gpt2_in_blocks,
                                      .unused = gpt2_unused};

/* ---- LLaMA --------------------------------------------------------------------------------------------- */

static const HuggingFaceName llama_once[] = {
    NAME("embedding.weight", "embed_tokens.weight", "VH"),
    NAME("norm.weight", "norm.weight", "H"),
    NAME("head.weight", "lm_head.weight", "VH", .has_no_prefix = true, ONLY_WITH(own_head)),
    {.kit = NULL}};

static const HuggingFaceName llama_in_blocks[] = {
    NAME("norm1.weight", "input_layernorm.weight", "H"),
    NAME("attention.query.weight", "self_attn.q_proj.weight", "HH"),
    NAME("attention.query.bias", "self_attn.q_proj.bias", "H", ONLY_WITH(qkv_bias)),
    NAME("attention.key.weight", "self_attn.k_proj.weight", "KH"),
    NAME("attention.key.bias", "self_attn.k_proj.bias", "K", ONLY_WITH(qkv_bias)),
    NAME("attention.value.weight", "self_attn.v_proj.weight", "KH"),
    NAME("attention.value.bias", "self_attn.v_proj.bias", "K", ONLY_WITH(qkv_bias)),
    NAME("attention.output.weight", "self_attn.o_proj.weight", "HH"),
    NAME("attention.output.bias", "self_attn.o_proj.bias", "H", ONLY_WITH(output_bias)),
    NAME("norm2.weight", "post_attention_layernorm.weight", "H"),
    NAME("feed_forward.gate.weight", "mlp.gate_proj.weight", "FH"),
    NAME("feed_forward.up.weight", "mlp.up_proj.weight", "FH"),
    NAME("feed_forward.down.weight", "mlp.down_proj.weight", "HF"),
    {.kit = NULL}};

static const char *const llama_unused[] = {"lm_head.weight", "*.rotary_emb.inv_freq", NULL};

/* What the library's models with the kit's LLaMA have in common. */
#define LLAMA                                                                                      \
    .architecture = "LLaMA", .prefix = "model.", .embedding = "embed_tokens.weight",               \
    .block = "layers.", .once = llama_once, .in_blocks = llama_in_blocks, .unused = llama_unused

static const HuggingFaceModel llama = {.type = "llama", .library_class = "LlamaForCausalLM", LLAMA},
                              mistral = {.type = "mistral",
                                         .library_class = "MistralForCausalLM",
                                         LLAMA},
                              qwen2 = {.type = "qwen2",
                                       .library_class = "Qwen2ForCausalLM",
                                       .has_qkv_bias = true,
                                       LLAMA};

const HuggingFaceModel *const hugging_face_models[] = {&bert,    &masked_bert, &gpt2, &llama,
                                                       &mistral, &qwen2,       NULL};

bool hugging_face_has(const TransformerConfig *config, const HuggingFaceName *name)
{
    return !name->flag || *((const bool *)config + name->flag);
}

int64_t hugging_face_size(const TransformerConfig *c, const HuggingFaceName *name, int dim)
{
    switch (name->shape[dim]) {
    case 'V':
        return c->vocabulary;
    case 'P':
        return c->positions;
    case 'T':
        return c->token_types;
    case 'F':
        return c->inner;
    case 'C':
        return c->classes;
    case 'K':
        return (int64_t)c->hidden / c->heads * c->kv_heads;
    case '3':
        return 3 * (int64_t)c->hidden;
    default:
        return c->hidden;
    }
}

Shape hugging_face_shape_of_third(const HuggingFaceName *name, Shape theirs)
{
    Shape shape = name->is_transposed ? SHAPE(theirs.size[1], theirs.size[0]) : theirs;
    if (strchr(name->shape, '3'))
        shape.size[0] /= 3;
    return shape;
}

Shape hugging_face_shape_in_kit(const HuggingFaceName *name, Shape theirs)
{
    const Shape shape = hugging_face_shape_of_third(name, theirs);
    if (!name->in_thirds)
        return shape;
    return shape.rank == 1 ? SHAPE(3, shape.size[0]) : SHAPE(3, shape.size[0], shape.size[1]);
}
