/* Generates a text: runs the prompt through the stages, then one token at a time. */
#include "story/story.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "autograd/operations.h"
#include "backend/host_view.h"
#include "base/language.h"
#include "train/trainer.h"

enum { STEPS = 200 }; /* unless the model has fewer positions */

/* A text that is being generated. */
typedef struct Story {
    const StoryConfig *config;
    Group *world;
    Mesh mesh;
    Pretrained *weights;
    Tokenizer *tokenizer;
    TransformerConfig sizes;
    Pool *pool;
    Model *model;
    Stage *stage;
    int64_t steps;   /* tokens of the text, including those of the prompt */
    int32_t *tokens; /* [steps+1] */
    int64_t count;   /* of tokens so far, including the begin token */
    int64_t most;    /* the largest count */
} Story;

/* ---- opening --------------------------------------------------------------------------------------------- */

static bool check_sizes(Story *s, Problem *problem)
{
    const TransformerConfig *c = pretrained_config(s->weights);
    s->sizes = *c;
    if (!c->architecture->is_language || c->architecture->is_masked)
        return problem_set(problem, s->config->model, N_("use a GPT-2 or LLaMA model"),
                           "%s is not a language model", c->architecture->name);
    s->steps = s->config->steps ? s->config->steps : c->positions < STEPS ? c->positions : STEPS;
    s->sizes.cached = (int)s->steps;
    if (s->steps > c->positions)
        return problem_set(problem, s->config->model, N_("choose a smaller STEPS"),
                           "STEPS=%lld, but the model has %d positions", (long long)s->steps,
                           c->positions);
    if (tokenizer_size(s->tokenizer) != c->vocabulary)
        return problem_set(problem, s->config->model,
                           N_("TOKENIZER= names the tokenizer that the model was trained with"),
                           "the model has %d tokens, but its tokenizer has %d", c->vocabulary,
                           tokenizer_size(s->tokenizer));
    if (c->layers < s->mesh.pp_degree)
        return problem_set(problem, s->config->model, N_("choose a smaller PP"),
                           "PP=%d stages cannot share %d layers", s->mesh.pp_degree, c->layers);
    return transformer_check(&s->sizes, s->mesh.tp_degree, problem);
}

/* The path of the tokenizer: TOKENIZER, the one that a checkpoint of the kit records, or the one
 * beside the weights. The caller frees it. */
static char *path_of_tokenizer(const StoryConfig *config, const Pretrained *weights)
{
    const char *slash = strrchr(config->model, '/');
    struct stat status;
    if (config->tokenizer)
        return strdup(config->tokenizer);
    if (pretrained_tokenizer(weights))
        return strdup(pretrained_tokenizer(weights));
    if (stat(config->model, &status) == 0 && S_ISDIR(status.st_mode))
        return strdup(config->model);
    return slash ? strndup(config->model, (size_t)(slash - config->model) + 1) : strdup(".");
}

static bool open_files(Story *s, Problem *problem)
{
    s->weights = pretrained_open(s->config->model, problem);
    if (!s->weights)
        return false;
    char *path = path_of_tokenizer(s->config, s->weights);
    s->tokenizer = tokenizer_open(path, problem);
    free(path);
    return s->tokenizer && check_sizes(s, problem);
}

static bool build_model(Story *s, Problem *problem)
{
    s->pool = pool_new(0, false);
    s->model = model_new(s->pool, &s->mesh, 0);
    s->stage = stage_new(s->model, &s->sizes, 1);
    model_finish(s->model);
    return pretrained_load(s->weights, s->model, problem);
}

/* The text begins with the tokenizer's begin token, if there is one, then PROMPT. */
static bool begin_text(Story *s, Problem *problem)
{
    const size_t bytes = strlen(s->config->prompt);
    if (utf8_valid_length(s->config->prompt, bytes) < bytes)
        return problem_set(problem, NULL, N_("write it in UTF-8"), "PROMPT is not valid UTF-8");
    const int32_t begin = tokenizer_special(s->tokenizer, BEGIN_TOKEN);
    int32_t *ids = NULL;
    const Text prompt = {s->config->prompt, bytes, "PROMPT", 1};
    const int64_t length = tokenizer_encode_text(s->tokenizer, prompt, &ids, problem);
    if (length < 0)
        return false;
    const bool fits = length < s->steps;
    s->tokens = malloc((size_t)(s->steps + 1) * sizeof *s->tokens);
    if (begin >= 0)
        s->tokens[s->count++] = begin;
    s->most = s->steps + s->count;
    if (fits)
        memcpy(s->tokens + s->count, ids, (size_t)length * sizeof *ids);
    s->count += length;
    free(ids);
    return (fits && s->count > 0) ||
           problem_set(problem, NULL, N_("choose a larger STEPS, or a PROMPT of a few words"),
                       "a PROMPT of %lld tokens does not fit into STEPS=%lld", (long long)length,
                       (long long)s->steps);
}

static void close_all(Story *s)
{
    if (s->stage)
        stage_free(s->stage);
    if (s->model)
        model_free(s->model);
    if (s->pool)
        pool_free(s->pool);
    pretrained_close(s->weights);
    tokenizer_free(s->tokenizer);
    free(s->tokens);
}

/* ---- a token --------------------------------------------------------------------------------------------- */

/* Runs the tokens from `past` on through the stages. */
static void run_tokens(Story *s, int64_t past)
{
    const int64_t count = s->count - past, sample = 0;
    Tape *tape =
        stage_begin(s->stage, 0, (TapeBatch){.count = 1, .samples = &sample, .past = past});
    tape_record(tape, false);
    stage_fill(s->stage, 0, tape_ints(tape, SHAPE(1, count), s->tokens + past), NULL, NULL, 1);
    forward_step(s->stage, 0, &s->mesh);
    stage_sends_finish(s->stage);
}

/* The logits after the last token, gathered from all tp ranks on each of them. The caller frees
 * them. */
static real *logits_of_all(const Story *s)
{
    const Mesh *mesh = &s->mesh;
    const Tensor *mine = s->stage->micro[0].logits;
    const int V = s->sizes.vocabulary, tp = mesh->tp_degree;
    const int64_t width = shape_last(mine->shape);
    real *all = malloc((size_t)V * sizeof *all);
    int *counts = malloc(2 * (size_t)tp * sizeof *counts), *begins = counts + tp;
    for (int rank = 0; rank < tp; rank++) {
        const Range held = chunk(V, rank, tp);
        begins[rank] = (int)held.begin;
        counts[rank] = (int)(held.end - held.begin);
    }
    HostView last = host_view_read(reals(mine) + tensor_count(mine) - width, width);
    MPI_Allgatherv(last.numbers, (int)width, MPI_FLOAT, all, counts, begins, MPI_FLOAT,
                   group_comm(mesh_tp_group(mesh)));
    host_view_end(&last);
    free(counts);
    return all;
}

/* Samples the next token on the last stage, and broadcasts it to the others. See story_sample(). */
static int32_t next_token(const Story *s)
{
    int32_t token = 0;
    if (s->mesh.pp_rank + 1 == s->mesh.pp_degree) {
        real *logits = logits_of_all(s);
        token = story_sample(s->config, logits, s->sizes.vocabulary, s->count);
        free(logits);
    }
    if (s->mesh.pp)
        MPI_Bcast(&token, 1, MPI_INT32_T, s->mesh.pp_degree - 1, group_comm(s->mesh.pp));
    return token;
}

/* Prints a piece without control characters, with which a model could command the terminal. They
 * become '?', and those of two bytes, which may be in two pieces, an inverted question mark. A
 * carriage return is left out. */
static void print_piece(const char *piece, size_t length)
{
    static unsigned char last;
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)piece[i];
        const bool is_control = (byte < ' ' && byte != '\n' && byte != '\t') || byte == 127;
        if (byte != '\r')
            putchar(is_control ? '?' : last == 0xC2 && byte >= 0x80 && byte < 0xA0 ? 0xBF : byte);
        last = byte;
    }
}

/* Prints the tokens from `first` on, then `end`. Returns the first token that is not printed yet. */
static int64_t print_from(const Story *s, int64_t first, const char *end)
{
    if (group_rank(s->world) != 0)
        return s->count;
    for (int64_t i = first; i < s->count; i++) {
        size_t length;
        const char *piece =
            tokenizer_piece(s->tokenizer, i > 0 ? s->tokens[i - 1] : -1, s->tokens[i], &length);
        print_piece(piece, length);
    }
    fputs(end, stdout);
    fflush(stdout);
    return s->count;
}

static bool write_text(Story *s, Problem *problem)
{
    const int32_t begin = tokenizer_special(s->tokenizer, BEGIN_TOKEN),
                  end = tokenizer_special(s->tokenizer, END_TOKEN);
    int64_t past = 0, printed = begin >= 0;
    int32_t token = 0;
    for (; s->count < s->most; printed = print_from(s, printed, "")) {
        run_tokens(s, past);
        past = s->count;
        token = next_token(s);
        if (token < 0 || token == begin || token == end)
            break;
        s->tokens[s->count++] = token;
    }
    print_from(s, printed, "\n");
    return token >= 0 ||
           problem_set(
               problem, s->config->model,
               N_("copy the model again, or train it again with a smaller LR: its weights are "
                  "too large"),
               "the model's logits are not finite");
}

bool story_write(const StoryConfig *config, Group *world, Problem *problem)
{
    Story s = {.config = config, .world = world};
    backend_set_threads(config->run.threads);
    mesh_open(&s.mesh, world, config->run.tp, config->run.pp);
    bool good = agree(world, open_files(&s, problem), problem) &&
                agree(world, begin_text(&s, problem), problem) &&
                agree(world, build_model(&s, problem), problem);
    if (good)
        good = write_text(&s, problem);
    close_all(&s);
    return good;
}
