/* The labs' BERT, assembled from their layers: the serial ones, the solutions, or the student's. */
#include "autograd/operations.h"
#include "base/optional_labs.h"
#include "model/sequence_block.h"
#include "model/transformer.h"

typedef struct BertEmbedding {
    Embedding *tokens;
    Tensor *positions; /* [positions, H], or NULL */
} BertEmbedding;

static void *bert_embedding_new(Builder *b, const TransformerConfig *c)
{
    BertEmbedding *layer = NEW(b, BertEmbedding);
    layer->tokens = embedding_new(for_embedding(within(b, "embedding")), c->vocabulary, c->hidden);
    if (c->positions)
        layer->positions =
            parameter_with(within(b, "positions"), "weight", SHAPE(c->positions, c->hidden),
                           whole(), EMBEDDING_WEIGHT);
    return layer;
}

static Tensor *bert_embed(const void *embedding, Tensor *ids, const Mesh *mesh)
{
    const BertEmbedding *layer = embedding;
    Tensor *x = embedding_forward(layer->tokens, ids, mesh);
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

void *bert_sequence_block_new(Builder *b, const TransformerConfig *c)
{
    return sequence_block_new(b, c->hidden, c->heads, 4 * c->hidden,
                              (SequenceDropout){.inner = c->dropout});
}

Tensor *bert_sequence_block(const void *block, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return sequence_block_forward(block, x, mask, mesh);
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

/* NULL in the grader's programs, which link no language model. */
extern const Architecture architecture_masked_bert __attribute__((weak));

const Architecture architecture_bert = {.name = "BERT",
                                        .embedding_new = bert_embedding_new,
                                        .embed = bert_embed,
                                        .block_new = bert_block_new,
                                        .block = bert_block,
                                        .sequence_block_new = bert_sequence_block_new,
                                        .sequence_block = bert_sequence_block,
                                        .head_new = bert_head_new,
                                        .head = bert_head,
                                        .loss = classifier_loss,
                                        .other_task = &architecture_masked_bert};
