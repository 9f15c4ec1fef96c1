/* Assembles the labs' BERT. */
#include "model/bert.h"

#include <stdio.h>

#include "autograd/operations.h"

struct Bert {
    Embedding *embedding;
    Tensor *positions; /* [positions, H], or NULL */
    Classifier *classifier;
    int layers;
    Block *block[];
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

Bert *bert_new(Builder *b, const BertConfig *config)
{
    Bert *bert = new_layer(b, (int64_t)(sizeof *bert + (size_t)config->layers * sizeof(Block *)));
    bert->embedding =
        embedding_new(for_embedding(within(b, "embedding")), config->vocabulary, config->hidden);
    if (config->positions)
        bert->positions =
            parameter_with(within(b, "positions"), "weight",
                           SHAPE(config->positions, config->hidden), whole(), EMBEDDING_WEIGHT);
    bert->layers = config->layers;
    for (int i = 0; i < config->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d", i);
        bert->block[i] =
            block_new(within(b, name), config->hidden, config->heads, (float)config->dropout);
    }
    bert->classifier = classifier_new(within(b, "classifier"), config->hidden, config->classes,
                                      (float)config->dropout);
    return bert;
}

Tensor *bert_forward(const Bert *bert, Tensor *ids, Tensor *mask, const Mesh *mesh)
{
    Tape *tape = ids->tape;
    TapeMark mark = tape_mark(tape);
    backend_range("embedding");
    Tensor *x = embedding_forward(bert->embedding, ids, mesh);
    if (bert->positions)
        x = add_positions(x, bert->positions);
    backend_range_end();
    tape_release_since(tape, mark, x);
    for (int i = 0; i < bert->layers; i++) {
        mark = tape_mark(tape);
        backend_range("block");
        Tensor *y = block_forward(bert->block[i], x, mask, mesh);
        backend_range_end();
        tape_release_since(tape, mark, y);
        x = y;
    }
    backend_range("classifier");
    x = classifier_forward(bert->classifier, x, mesh);
    backend_range_end();
    return x;
}
