/* Opens and reads a pretrained model in any format. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/host_view.h"
#include "base/language.h"
#include "checkpoint/checkpoint.h"
#include "pretrained/internal.h"

static bool open_format(Pretrained *from, Problem *problem)
{
    struct stat status;
    if (stat(from->path, &status))
        return problem_set(
            problem, from->path,
            N_("name a folder with config.json and model.safetensors, a SAVE folder, or a .bin"),
            "the model cannot be read: %s", strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return llama_bin_open(from, problem);
    return checkpoint_find(from->path).text[0] ? own_checkpoint_open(from, problem)
                                               : hugging_face_open(from, problem);
}

Pretrained *pretrained_open(const char *path, Problem *problem)
{
    Pretrained *from = calloc(1, sizeof *from);
    from->path = strdup(path);
    if (open_format(from, problem))
        return from;
    pretrained_close(from);
    return NULL;
}

void pretrained_close(Pretrained *from)
{
    if (!from)
        return;
    if (from->format)
        from->format->close(from);
    free(from->path);
    free(from);
}

const TransformerConfig *pretrained_config(const Pretrained *from)
{
    return &from->config;
}

const char *pretrained_tokenizer(const Pretrained *from)
{
    return from->tokenizer;
}

static bool are_finite(const HostView *view)
{
    for (int64_t i = 0; i < view->count; i++)
        if (!isfinite(view->numbers[i]))
            return false;
    return true;
}

bool pretrained_load(const Pretrained *from, Model *model, Problem *problem)
{
    bool good = true;
    for (Parameter *p = model->parameters; good && p; p = p->next) {
        if (from->format->has && !from->format->has(from, p))
            continue;
        HostView view = host_view_write(reals(p->value), tensor_count(p->value));
        good = from->format->read(from, p, view.numbers, problem) &&
               (are_finite(&view) ||
                problem_set(
                    problem, from->path,
                    "use another copy of the model: nothing can be computed from NaN or infinity",
                    "parameter %s is not finite in the model", p->name));
        host_view_store(&view);
    }
    model_weights_changed(model);
    return good;
}
