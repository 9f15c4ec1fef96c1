/* Reads the weights of a checkpoint of the kit. */
#include <string.h>

#include "base/language.h"
#include "checkpoint/checkpoint.h"
#include "pretrained/internal.h"

static bool read_part(const Pretrained *from, const Parameter *p, real *values, Problem *problem)
{
    const SavedModel *saved = from->open;
    const SavedParameter *found = checkpoint_index_find(&saved->index, p->name);
    if (!found || !shape_equal(found->shape, p->shape))
        return problem_set(problem, from->path,
                           N_("checkpoint info DIR lists what a checkpoint holds"),
                           "the checkpoint has no parameter %s %s", p->name, SHAPE_TEXT(p->shape));
    const bool divided = p->placement.kind == SHARD;
    return saved_model_read(saved, 0, found, divided ? p->placement.dim : 0,
                            divided ? p->held : (Range){0, p->shape.size[0]}, values, problem);
}

/* The heads of a BERT's two tasks: how the names of their parameters begin. */
static const struct {
    const char *name;
    bool is_masked;
} heads[] = {{"pooler.", false},   {"classifier.", false},    {"norm.", true},
             {"transform.", true}, {"transform_norm.", true}, {"decoder.", true},
             {"head.", true}};

/* False only for the head of the task that the BERT was not trained for. */
static bool has_parameter(const Pretrained *from, const Parameter *p)
{
    const Architecture *is = from->config.architecture;
    for (size_t i = 0; is->other_task && i < sizeof heads / sizeof *heads; i++)
        if (!strncmp(p->name, heads[i].name, strlen(heads[i].name)))
            return heads[i].is_masked == is->is_masked;
    return true;
}

static void close_checkpoint(Pretrained *from)
{
    saved_model_close(from->open);
}

static const PretrainedFormat own_checkpoint = {
    .has = has_parameter, .read = read_part, .close = close_checkpoint};

bool own_checkpoint_open(Pretrained *from, Problem *problem)
{
    static const Architecture *const known[] = {
        &architecture_bert,      &architecture_masked_bert,
        &architecture_real_bert, &architecture_masked_real_bert,
        &architecture_gpt2,      &architecture_llama};
    SavedModel *saved = saved_model_open(checkpoint_find(from->path).text, problem);
    if (!saved)
        return false;
    from->open = saved;
    from->format = &own_checkpoint;
    from->tokenizer = saved->index.tokenizer;
    if (!own_checkpoint_config(saved, &from->config, problem))
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i]->name, saved->index.architecture))
            from->config.architecture = known[i];
    return from->config.architecture ||
           problem_set(problem, from->path, N_("a newer kit wrote this checkpoint: use that kit"),
                       "there is no architecture %s", saved->index.architecture);
}
