/* The parts of a transformer, one after the other. */
#include "model/transformer.h"

#include <stdio.h>

#include "autograd/operations.h"
#include "base/language.h"

struct Transformer {
    const Architecture *architecture;
    void *embedding, *head; /* each NULL if another stage holds it */
    Range blocks;
    Recompute recompute;
    bool sequence_parallel;
    void *block[]; /* [layers]; NULL outside `blocks` */
};

bool transformer_check(const TransformerConfig *config, int tp, Problem *problem)
{
    if (config->hidden % config->heads)
        return problem_set(problem, NULL, "choose HIDDEN_DIM as a multiple of HEADS",
                           "HIDDEN_DIM=%d is not divisible by HEADS=%d", config->hidden,
                           config->heads);
    if (config->heads % tp)
        return problem_set(
            problem, NULL,
            "each rank takes the same number of heads: choose a TP that divides their number",
            "%d heads cannot be split evenly over %d ranks", config->heads, tp);
    if (config->sequence_parallel && !config->architecture->sequence_block)
        return problem_set(problem, NULL,
                           N_("leave out MODEL, or use MODEL=base or MODEL=large; or leave out SP"),
                           "SP=1 splits the positions of the labs' BERT, not those of a %s",
                           config->architecture->name);
    return !config->architecture->check || config->architecture->check(config, tp, problem);
}

TransformerPart transformer_whole(const TransformerConfig *config)
{
    return (TransformerPart){true, {0, config->layers}, true};
}

Transformer *transformer_new(Builder *b, const TransformerConfig *config, TransformerPart part)
{
    const Architecture *is = config->architecture;
    Transformer *t = new_layer(b, (int64_t)(sizeof *t + (size_t)config->layers * sizeof *t->block));
    t->architecture = is;
    if (part.embedding)
        t->embedding = is->embedding_new(b, config);
    t->blocks = part.blocks;
    t->recompute = config->recompute;
    t->sequence_parallel = config->sequence_parallel;
    for (int64_t i = part.blocks.begin; i < part.blocks.end; i++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d", (int)i);
        t->block[i] = (t->sequence_parallel ? is->sequence_block_new
                                            : is->block_new)(within(b, name), config);
    }
    if (part.head)
        t->head = is->head_new(b, config, t->embedding);
    return t;
}

Tensor *transformer_embed(const Transformer *t, Tensor *ids, const Mesh *mesh)
{
    TapeMark mark = tape_mark(ids->tape);
    backend_range("embedding");
    Tensor *x = t->architecture->embed(t->embedding, ids, mesh);
    if (t->sequence_parallel)
        x = split_positions(x, mesh);
    backend_range_end();
    tape_release_since(ids->tape, mark, x);
    return x;
}

static Tensor *run_block(const Transformer *t, int64_t i, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const Architecture *is = t->architecture;
    const Segment block = {t->sequence_parallel ? is->sequence_block : is->block, t->block[i],
                           mask};
    return t->recompute == RECOMPUTE_BLOCKS ? recompute(&block, x, 0, mesh)
                                            : block.run(block.layer, x, mask, mesh);
}

Tensor *transformer_run_blocks(const Transformer *t, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    Tape *tape = x->tape;
    tape->recomputes_attention = t->recompute == RECOMPUTE_ATTENTION;
    for (int64_t i = t->blocks.begin; i < t->blocks.end; i++) {
        TapeMark mark = tape_mark(tape);
        backend_range("block");
        x = run_block(t, i, x, mask, mesh);
        backend_range_end();
        tape_release_since(tape, mark, x);
    }
    tape->recomputes_attention = false;
    return t->head && t->sequence_parallel ? all_positions(x, mesh) : x;
}

Tensor *transformer_head(const Transformer *t, Tensor *x, const Mesh *mesh)
{
    backend_range(t->architecture->is_language ? "head" : "classifier");
    Tensor *logits = t->architecture->head(t->head, x, mesh);
    backend_range_end();
    return logits;
}

Tensor *transformer_loss(const Transformer *t, Tensor *logits, Tensor *labels,
                         int64_t rows_of_a_step, const Mesh *mesh)
{
    return t->architecture->loss(logits, labels, rows_of_a_step, mesh);
}

Tensor *transformer_forward(const Transformer *t, Tensor *ids, Tensor *mask, const Mesh *mesh)
{
    Tensor *x = transformer_run_blocks(t, transformer_embed(t, ids, mesh), mask, mesh);
    return transformer_head(t, x, mesh);
}
