/* The pretraining of the labs' BERT (Devlin et al., arXiv:1810.04805, section 3.1): its blocks
   between an embedding split along the vocabulary and a head tied to it. It is in a file of its own
   because the grader links bert.c without the functions of lab 21. */
#include <math.h>

#include "autograd/operations.h"
#include "model/language.h"

typedef struct MaskedEmbedding {
    Tensor *tokens;    /* [V,H] split along V */
    Tensor *positions; /* [positions,H], or NULL */
} MaskedEmbedding;

typedef struct MaskedHead {
    LayerNorm *norm; /* needed because pre-LN blocks do not normalise their result */
    Tensor *table;   /* [V,H] the embedding's */
} MaskedHead;

/* Makes the initial vectors of tokens and positions longer than BERT's N(0, 0.02): a token's logit
   at its own position starts at about its vector's norm times sqrt(H). With BERT's 768 columns, that
   is large enough for the head to recognise a visible token, or one whose vector attention has
   copied. In a narrow model, it is not. */
static Tensor *begin_long(Tensor *table, const TransformerConfig *c)
{
    table->parameter->deviation = 1 / sqrt((double)c->hidden);
    return table;
}

static void *masked_embedding_new(Builder *b, const TransformerConfig *c)
{
    MaskedEmbedding *layer = NEW(b, MaskedEmbedding);
    layer->tokens =
        begin_long(vocabulary_embedding_new(within(b, "embedding"), c, vocabulary_twin(b, c)), c);
    if (c->positions)
        layer->positions =
            begin_long(parameter_with(within(b, "positions"), "weight",
                                      SHAPE(c->positions, c->hidden), whole(), EMBEDDING_WEIGHT),
                       c);
    return layer;
}

static Tensor *masked_embed(const void *embedding, Tensor *ids, const Mesh *mesh)
{
    const MaskedEmbedding *layer = embedding;
    Tensor *x = vocabulary_embedding(layer->tokens, ids, mesh);
    return layer->positions ? add_positions(x, layer->positions) : x;
}

static void *masked_block_new(Builder *b, const TransformerConfig *c)
{
    return block_new(b, c->hidden, c->heads, (float)c->dropout);
}

static Tensor *masked_block(const void *block, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return block_forward(block, x, mask, mesh);
}

static void *masked_head_new(Builder *b, const TransformerConfig *c, const void *embedding)
{
    const MaskedEmbedding *held = embedding;
    MaskedHead *head = NEW(b, MaskedHead);
    head->norm = layer_norm_new(within(b, "norm"), c->hidden);
    head->table = begin_long(vocabulary_head_new(b, c, held ? held->tokens : NULL), c);
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
                                               .embed = masked_embed,
                                               .block_new = masked_block_new,
                                               .block = masked_block,
                                               .sequence_block_new = bert_sequence_block_new,
                                               .sequence_block = bert_sequence_block,
                                               .head_new = masked_head_new,
                                               .head = masked_head,
                                               .loss = language_loss,
                                               .other_task = &architecture_bert};
