/* Prints the serial BERT's results for torch_model.py to compare with PyTorch: its parameters, a
 * batch, the logits, the loss, every gradient, and the weights after a step of SGD and after three
 * of AdamW. Also prints the results of operations that the model uses only in another form. A
 * tensor is two lines: its name and sizes, then its numbers.
 *
 * dump-model VOCABULARY HIDDEN LAYERS HEADS CLASSES POSITIONS B S */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/operations.h"
#include "model/transformer.h"

enum { ADAMW_STEPS = 3 };
static const double sgd_rate = 0.5, sgd_decay = 0.01;
static const AdamW adamw = {
    .rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};

typedef struct Run {
    Pool *pool;
    Mesh mesh;
    Model *model;
    Transformer *transformer;
    Tape *tape;
    TransformerConfig config;
    int64_t batch, positions;
} Run;

static void print_sizes(const char *prefix, const char *name, Shape shape)
{
    printf("%s%s", prefix, name);
    for (int i = 0; i < shape.rank; i++)
        printf(" %lld", (long long)shape.size[i]);
    printf("\n");
}

static void print_tensor(const char *prefix, const char *name, const Tensor *x)
{
    print_sizes(prefix, name, x->shape);
    for (int64_t i = 0; i < tensor_count(x); i++)
        printf("%.17g ", x->dtype == INT32 ? ints(x)[i] : (double)reals(x)[i]);
    printf("\n");
}

static void print_parameters(Run *run, const char *prefix, bool gradients)
{
    for (Parameter *p = run->model->parameters; p; p = p->next)
        print_tensor(prefix, p->name, gradients ? p->value->gradient : p->value);
}

/* An integer in first..end-1, the same in every run. */
static int32_t draw(const char *name, int64_t index, int first, int end)
{
    return first +
           (int32_t)(philox_uniform_at(philox_key(1, name, 0), (uint64_t)index) * (end - first));
}

static Tensor *ids_of(Run *run, const char *name, Shape shape, int end)
{
    Tensor *x = tape_tensor(run->tape, INT32, shape, whole());
    for (int64_t i = 0; i < tensor_count(x); i++)
        ints(x)[i] = draw(name, i, 0, end);
    return x;
}

/* Sample b has at least one token, and padding after its tokens. */
static Tensor *mask_of(Run *run)
{
    Tensor *x = tape_tensor(run->tape, INT32, SHAPE(run->batch, run->positions), whole());
    for (int64_t b = 0; b < run->batch; b++) {
        int32_t tokens =
            b == 0 ? (int32_t)run->positions : draw("tokens", b, 1, (int)run->positions + 1);
        for (int64_t s = 0; s < run->positions; s++)
            ints(x)[b * run->positions + s] = s < tokens;
    }
    return x;
}

/* One forward and backward pass; prints the results if `prints`. */
static void pass(Run *run, bool prints)
{
    tape_reset(run->tape, (TapeBatch){.training = true});
    model_use_tape(run->model, run->tape);
    model_clear_gradients(run->model);
    Tensor *ids = ids_of(run, "ids", SHAPE(run->batch, run->positions), run->config.vocabulary);
    Tensor *labels = ids_of(run, "labels", SHAPE(run->batch), run->config.classes),
           *mask = mask_of(run);
    Tensor *logits = transformer_forward(run->transformer, ids, mask, &run->mesh);
    Tensor *loss = cross_entropy_mean(logits, labels, run->batch, NULL);
    if (prints) {
        print_tensor("batch/", "ids", ids);
        print_tensor("batch/", "mask", mask);
        print_tensor("batch/", "labels", labels);
        print_tensor("result/", "logits", logits);
        print_tensor("result/", "loss", loss);
    }
    tape_backward(run->tape, loss, NULL);
    model_complete_gradients(run->model);
}

static void print_steps(Run *run)
{
    int64_t count = run->model->arena_size;
    size_t bytes = (size_t)count * sizeof(real);
    real *weights = model_weights(run->model), *before = malloc(bytes), *m = calloc(1, bytes),
         *v = calloc(1, bytes);
    memcpy(before, weights, bytes);
    kernel_sgd_step(count, weights, model_gradients(run->model), sgd_rate, sgd_decay);
    print_parameters(run, "sgd/", false);
    memcpy(weights, before, bytes);
    AdamW step = adamw;
    for (step.step = 1; step.step <= ADAMW_STEPS; step.step++) {
        pass(run, false);
        kernel_adamw_step(count, weights, model_gradients(run->model), m, v, &step);
    }
    print_parameters(run, "adamw/", false);
    free(before);
    free(m);
    free(v);
}

static Tensor *normal(Run *run, const char *name, Shape shape)
{
    Tensor *x = tape_tensor(run->tape, REAL, shape, whole());
    for (int64_t i = 0; i < tensor_count(x); i++)
        reals(x)[i] = (real)philox_normal_at(philox_key(2, name, 0), (uint64_t)i);
    x->needs_gradient = true;
    print_tensor("operations/", name, x);
    return x;
}

static void print_result(Run *run, const char *name, Tensor *y, int inputs, Tensor *const *x)
{
    char text[64];
    snprintf(text, sizeof text, "%s.dy", name);
    tape_backward(run->tape, y, normal(run, text, y->shape));
    print_tensor("operation/", name, ready(y));
    for (int i = 0; i < inputs; i++) {
        snprintf(text, sizeof text, "%s.dx%d", name, i);
        print_tensor("operation/", text, x[i]->gradient);
    }
}

static void print_operations(Run *run)
{
    int64_t h = run->config.hidden;
    tape_reset(run->tape, (TapeBatch){.training = true});
    Tensor *x[] = {normal(run, "linear.x0", SHAPE(run->batch, run->positions, h)),
                   normal(run, "linear.x1", SHAPE(h + 1, h)),
                   normal(run, "linear.x2", SHAPE(h + 1))};
    print_result(run, "linear", linear_with_bias(x[0], x[1], x[2]), 3, x);
    Tensor *n[] = {normal(run, "norm.x0", SHAPE(run->batch, run->positions, h)),
                   normal(run, "norm.x1", SHAPE(h)), normal(run, "norm.x2", SHAPE(h))};
    print_result(run, "norm", layer_norm_with(n[0], n[1], n[2], 1e-5), 3, n);
    Tensor *g[] = {normal(run, "gelu.x0", SHAPE(run->batch, 3 * h))};
    scale(g[0], 3); /* also tests gelu where it is nearly flat or linear */
    print_tensor("operations/", "gelu.x0", g[0]);
    print_result(run, "gelu", gelu(g[0]), 1, g);
}

static void run_down(Run *run)
{
    tape_free(run->tape);
    model_free(run->model);
    pool_free(run->pool);
}

int main(int argc, char **argv)
{
    if (argc != 9)
        return 2;
    int size[8];
    for (int i = 0; i < 8; i++)
        size[i] = atoi(argv[i + 1]);
    Run run = {.pool = pool_new(0, true),
               .mesh = {.tp_degree = 1, .dp_degree = 1},
               .config = {.architecture = &architecture_bert,
                          .vocabulary = size[0],
                          .hidden = size[1],
                          .layers = size[2],
                          .heads = size[3],
                          .classes = size[4],
                          .positions = size[5]},
               .batch = size[6],
               .positions = size[7]};
    run.model = model_new(run.pool, &run.mesh, 5);
    run.tape = tape_new(run.pool, &run.mesh);
    run.transformer =
        transformer_new(run.model->builder, &run.config, transformer_whole(&run.config));
    model_finish(run.model);
    print_parameters(&run, "weights/", false);
    pass(&run, true);
    print_parameters(&run, "gradients/", true);
    print_steps(&run);
    print_operations(&run);
    run_down(&run);
    return 0;
}
