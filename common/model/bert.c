/* The labs' BERT, assembled from the layers in the slots: a classifier, or the masked language model
   of its pretraining. */
#include "autograd/operations.h"
#include "model/language.h"

typedef struct BertEmbedding {
    Embedding *tokens; /* of a classifier */
    Tensor *table;     /* of a masked language model: [V,H] split along V */
    Tensor *positions; /* [positions, H], or NULL */
} BertEmbedding;

/* Both begin with their tokens, so that a classifier's parameters keep their order. */
static void add_table_of_positions(BertEmbedding *layer, Builder *b, const TransformerConfig *c)
{
    if (c->positions)
        layer->positions =
            parameter_with(within(b, "positions"), "weight", SHAPE(c->positions, c->hidden),
                           whole(), EMBEDDING_WEIGHT);
}

static void *bert_embedding_new(Builder *b, const TransformerConfig *c)
{
    BertEmbedding *layer = NEW(b, BertEmbedding);
    layer->tokens = embedding_new(for_embedding(within(b, "embedding")), c->vocabulary, c->hidden);
    add_table_of_positions(layer, b, c);
    return layer;
}

static void *masked_embedding_new(Builder *b, const TransformerConfig *c)
{
    BertEmbedding *layer = NEW(b, BertEmbedding);
    layer->table = vocabulary_embedding_new(within(b, "embedding"), c, vocabulary_twin(b, c));
    add_table_of_positions(layer, b, c);
    return layer;
}

static Tensor *bert_embed(const void *embedding, Tensor *ids, const Mesh *mesh)
{
    const BertEmbedding *layer = embedding;
    Tensor *x = layer->table ? vocabulary_embedding(layer->table, ids, mesh)
                             : embedding_forward(layer->tokens, ids, mesh);
    return layer->positions ? add_positions(x, layer->positions) : x;
}

static void *bert_block_new(Builder *b, const TransformerConfig *c)
{
    return block_new(b, c->hidden, c->heads, (float)c->dropout);
}

static Tensor *bert_block(const void *block, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return block_forward(block, x, mask, mesh);
}

static void *bert_head_new(Builder *b, const TransformerConfig *c, const void *embedding)
{
    return classifier_new(within(b, "classifier"), c->hidden, c->classes, (float)c->dropout);
}

static Tensor *bert_head(const void *head, Tensor *x, const Mesh *mesh)
{
    return classifier_forward(head, x, mesh);
}

Tensor *classifier_loss(Tensor *logits, Tensor *labels, int64_t rows_of_a_step, const Mesh *mesh)
{
    return cross_entropy_mean(logits, labels, rows_of_a_step, NULL);
}

const Architecture architecture_bert = {.name = "BERT",
                                        .embedding_new = bert_embedding_new,
                                        .embed = bert_embed,
                                        .block_new = bert_block_new,
                                        .block = bert_block,
                                        .head_new = bert_head_new,
                                        .head = bert_head,
                                        .loss = classifier_loss};

typedef struct MaskedHead {
    LayerNorm *norm; /* pre-LN blocks leave their sum as it is */
    Tensor *table;   /* [V,H] the embedding's */
} MaskedHead;

static void *masked_head_new(Builder *b, const TransformerConfig *c, const void *embedding)
{
    const BertEmbedding *held = embedding;
    MaskedHead *head = NEW(b, MaskedHead);
    head->norm = layer_norm_new(within(b, "norm"), c->hidden);
    head->table = vocabulary_head_new(b, c, held ? held->table : NULL);
    return head;
}

static Tensor *masked_head(const void *layer, Tensor *x, const Mesh *mesh)
{
    const MaskedHead *head = layer;
    return vocabulary_logits(head->table, layer_norm(head->norm, x), mesh);
}

const Architecture architecture_masked_bert = {.name = "masked BERT",
                                               .is_language = true,
                                               .is_masked = true,
                                               .embedding_new = masked_embedding_new,
                                               .embed = bert_embed,
                                               .block_new = bert_block_new,
                                               .block = bert_block,
                                               .head_new = masked_head_new,
                                               .head = masked_head,
                                               .loss = language_loss};
