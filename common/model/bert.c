/* Assembles the labs' BERT. */
#include "model/bert.h"

#include <stdio.h>

#include "autograd/operations.h"

struct Bert {
    Embedding *embedding; /* what another rank holds is NULL */
    Tensor *positions;    /* [positions, H], or NULL */
    Classifier *classifier;
    Range blocks;
    Block *block[]; /* as many as the whole BERT has */
};

bool bert_check(const BertConfig *config, int tp, Problem *problem)
{
    if (config->hidden % config->heads)
        return problem_set(problem, NULL, "choose HIDDEN_DIM as a multiple of HEADS",
                           "HIDDEN_DIM=%d is not divisible by HEADS=%d", config->hidden,
                           config->heads);
    if (config->heads % tp)
        return problem_set(
            problem, NULL,
            "each rank takes the same number of heads: choose HEADS as a multiple of TP",
            "%d heads cannot be split evenly over %d ranks", config->heads, tp);
    return true;
}

BertPart bert_whole(const BertConfig *config)
{
    return (BertPart){true, {0, config->layers}, true};
}

Bert *bert_new(Builder *b, const BertConfig *config, BertPart part)
{
    Bert *bert = new_layer(b, (int64_t)(sizeof *bert + (size_t)config->layers * sizeof(Block *)));
    if (part.embedding)
        bert->embedding = embedding_new(for_embedding(within(b, "embedding")), config->vocabulary,
                                        config->hidden);
    if (part.embedding && config->positions)
        bert->positions =
            parameter_with(within(b, "positions"), "weight",
                           SHAPE(config->positions, config->hidden), whole(), EMBEDDING_WEIGHT);
    bert->blocks = part.blocks;
    for (int64_t i = part.blocks.begin; i < part.blocks.end; i++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d", (int)i);
        bert->block[i] =
            block_new(within(b, name), config->hidden, config->heads, (float)config->dropout);
    }
    if (part.classifier)
        bert->classifier = classifier_new(within(b, "classifier"), config->hidden, config->classes,
                                          (float)config->dropout);
    return bert;
}

Tensor *bert_embed(const Bert *bert, Tensor *ids, const Mesh *mesh)
{
    TapeMark mark = tape_mark(ids->tape);
    backend_range("embedding");
    Tensor *x = embedding_forward(bert->embedding, ids, mesh);
    if (bert->positions)
        x = add_positions(x, bert->positions);
    backend_range_end();
    tape_release_since(ids->tape, mark, x);
    return x;
}

Tensor *bert_run_blocks(const Bert *bert, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    for (int64_t i = bert->blocks.begin; i < bert->blocks.end; i++) {
        TapeMark mark = tape_mark(x->tape);
        backend_range("block");
        x = block_forward(bert->block[i], x, mask, mesh);
        backend_range_end();
        tape_release_since(x->tape, mark, x);
    }
    return x;
}

Tensor *bert_classify(const Bert *bert, Tensor *x, const Mesh *mesh)
{
    backend_range("classifier");
    Tensor *logits = classifier_forward(bert->classifier, x, mesh);
    backend_range_end();
    return logits;
}

Tensor *bert_forward(const Bert *bert, Tensor *ids, Tensor *mask, const Mesh *mesh)
{
    return bert_classify(bert, bert_run_blocks(bert, bert_embed(bert, ids, mesh), mask, mesh),
                         mesh);
}
