/* build/bench-kernels [threads]: how fast each kernel runs at the sizes of two models, and the share of the
 * measured peak that the matrix products reach. GB/s counts each number that must be read or written once.
 * Not a test: nothing is compared. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"

enum {
    TIMES = 31,
    SAMPLES = 8,
    POSITIONS = 128,
    ROWS = SAMPLES * POSITIONS,
    VOCABULARY = 30522,
    BUFFERS = 8
};

/** The tensors of one model size. Each kernel takes from `buffer` what it needs. */
typedef struct Bench {
    int64_t hidden, inner, heads, count; /**< count = ROWS · hidden, the size of an activation */
    float *buffer[BUFFERS];              /**< [ROWS, inner], or larger */
    float *table;                        /**< [VOCABULARY, hidden] */
    float *highest, *sums, *work;
    int32_t *ids, *shown;
    DropoutMask mask;
    uint32_t *kept; /**< [ROWS, dropout_words(inner)] */
    AttentionShape shape;
} Bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Prints one line; `work` in bytes or floating-point operations, which `unit` names by the thousand
 * millions. */
static void measure(const char *name, Bench *bench, void (*kernel)(Bench *), double work, const char *unit)
{
    double seconds[TIMES];
    kernel(bench);
    for (int i = 0; i < TIMES; i++) {
        const double start = now();
        kernel(bench);
        seconds[i] = now() - start;
    }
    qsort(seconds, TIMES, sizeof *seconds, by_value);
    const double median = seconds[TIMES / 2];
    printf("%-24s %6ld %10.1f %10.1f %9.1f %s\n", name, (long)bench->hidden, 1e6 * seconds[0], 1e6 * median,
           1e-9 * work / median, unit);
}

static void up(Bench *b)
{
    kernel_linear_forward(ROWS, b->hidden, b->inner, b->buffer[0], b->buffer[1], b->buffer[2], b->buffer[3]);
}

static void up_backward_input(Bench *b)
{
    kernel_linear_backward_input(ROWS, b->hidden, b->inner, b->buffer[0], b->buffer[1], b->buffer[3], false);
}

static void up_backward_weight(Bench *b)
{
    kernel_linear_backward_weight(ROWS, b->hidden, b->inner, b->buffer[0], b->buffer[1], b->buffer[3], false);
}

static void square(Bench *b)
{
    kernel_linear_forward(ROWS, b->hidden, b->hidden, b->buffer[0], b->buffer[1], b->buffer[2], b->buffer[3]);
}

static void bias(Bench *b)
{
    kernel_linear_backward_bias(ROWS, b->inner, b->buffer[0], b->buffer[1]);
}

static void look_up(Bench *b)
{
    kernel_lookup_forward(ROWS, b->hidden, b->ids, b->table, b->buffer[0]);
}

static void look_up_backward(Bench *b)
{
    kernel_lookup_backward(ROWS, b->hidden, b->ids, b->buffer[0], b->table);
}

static void layer_norm(Bench *b)
{
    kernel_layer_norm_forward(ROWS, b->hidden, b->buffer[0], b->buffer[1], b->buffer[2], 1e-5, b->buffer[3],
                              b->buffer[4], b->buffer[5]);
}

static void layer_norm_backward(Bench *b)
{
    kernel_layer_norm_backward(ROWS, b->hidden, b->buffer[0], b->buffer[1], b->buffer[2], b->buffer[4],
                               b->buffer[5], b->buffer[3], true, b->buffer[6], b->buffer[7]);
}

static void gelu(Bench *b)
{
    kernel_gelu_forward(ROWS * b->inner, b->buffer[0], b->buffer[1]);
}

static void gelu_backward(Bench *b)
{
    kernel_gelu_backward(ROWS * b->inner, b->buffer[0], b->buffer[1], b->buffer[2]);
}

static void dropout_draw(Bench *b)
{
    kernel_dropout_draw(ROWS, b->inner, &b->mask, b->kept);
}

static void dropout(Bench *b)
{
    kernel_dropout_apply(ROWS, b->hidden, b->mask.probability, b->kept, b->buffer[0], b->buffer[1]);
}

static void gelu_dropout(Bench *b)
{
    kernel_gelu_dropout_forward(ROWS, b->inner, b->mask.probability, b->kept, b->buffer[0], b->buffer[1]);
}

static void gelu_dropout_backward(Bench *b)
{
    kernel_gelu_dropout_backward(ROWS, b->inner, b->mask.probability, b->kept, b->buffer[0], b->buffer[1],
                                 b->buffer[2]);
}

static void attention(Bench *b)
{
    kernel_attention_forward(&b->shape, b->buffer[0], b->buffer[1], b->buffer[2], b->shown, b->buffer[3],
                             b->highest, b->sums, b->work);
}

static void attention_backward(Bench *b)
{
    kernel_attention_backward(&b->shape, b->buffer[0], b->buffer[1], b->buffer[2], b->shown, b->highest,
                              b->sums, b->buffer[3], b->buffer[4], b->buffer[5], b->buffer[6], b->work);
}

static void loss(Bench *b)
{
    kernel_cross_entropy(SAMPLES, 2, b->buffer[0], b->shown, b->buffer[1], b->buffer[2]);
}

static void fill(Bench *b)
{
    kernel_vector_fill(b->count, 0, b->buffer[0]);
}

static void copy(Bench *b)
{
    kernel_vector_copy(b->count, b->buffer[0], b->buffer[1]);
}

static void add(Bench *b)
{
    kernel_vector_add(b->count, b->buffer[0], b->buffer[1], b->buffer[2]);
}

static void scale(Bench *b)
{
    kernel_vector_scale(b->count, -1.0, b->buffer[0]);
}

static void columns(Bench *b)
{
    kernel_copy_rows(ROWS, b->hidden / 2, b->buffer[0], b->hidden, b->buffer[1], b->hidden / 2);
}

static void sgd(Bench *b)
{
    kernel_sgd_step(b->inner * b->hidden, b->buffer[0], b->buffer[1], 1e-3, 0.01);
}

/* v must not be negative, nor so small that it ends among the subnormal numbers. */
static void positive(Bench *b)
{
    kernel_vector_fill(b->inner * b->hidden, 0.5, b->buffer[4]);
}

static void adamw(Bench *b)
{
    const AdamW step = {1e-3, 0.9, 0.999, 1e-8, 0.01, 10, NULL};
    kernel_adamw_step(b->inner * b->hidden, b->buffer[0], b->buffer[1], b->buffer[2], b->buffer[4], &step);
}

static float *numbers(int64_t count)
{
    const size_t lines = ((size_t)count * sizeof(float) + 63) / 64;
    float *x = aligned_alloc(64, 64 * lines);
    if (!x)
        exit(1);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(i * 7919 % 1024) / 512.0f - 1.0f;
    return x;
}

/* The peak: multiply-adds on numbers that stay in registers, 24 chains of them, since each waits for the one
 * before. */
enum { CHAINS = 24, LANES = 16, TURNS = 1 << 14 };

KERNEL static void multiply_add(float *numbers)
{
    float x[CHAINS][LANES];
    for (int c = 0; c < CHAINS; c++)
        for (int l = 0; l < LANES; l++)
            x[c][l] = numbers[c * LANES + l];
    for (int turn = 0; turn < TURNS; turn++)
#pragma GCC unroll 24
        for (int c = 0; c < CHAINS; c++)
            for (int l = 0; l < LANES; l++)
                x[c][l] = x[c][l] * 0.999f + 0.001f;
    for (int c = 0; c < CHAINS; c++)
        for (int l = 0; l < LANES; l++)
            numbers[c * LANES + l] = x[c][l];
}

static void peak(Bench *b)
{
    multiply_add(b->buffer[0]);
}

/* The memory: a table that is larger than the caches, read and written. */
static void memory(Bench *b)
{
    kernel_vector_scale(VOCABULARY * b->hidden, -1.0, b->table);
}

static void measure_all(Bench *b)
{
    const double small = 4.0 * (double)b->count, large = 4.0 * ROWS * (double)b->inner;
    const double weights = 4.0 * (double)(b->inner * b->hidden),
                 product = 2.0 * ROWS * (double)(b->inner * b->hidden);
    const double scores = 2.0 * SAMPLES * (double)b->heads * POSITIONS * POSITIONS * 64;
    printf("\n%-24s %6s %10s %10s %9s\n", "kernel", "hidden", "min us", "median us", "rate");
    measure("peak of one core", b, peak, 2.0 * CHAINS * LANES * TURNS, "GFLOP/s");
    measure("memory of one core", b, memory, 8.0 * VOCABULARY * (double)b->hidden, "GB/s");
    measure("linear_forward up", b, up, product, "GFLOP/s");
    measure("linear_backward_input", b, up_backward_input, product, "GFLOP/s");
    measure("linear_backward_weight", b, up_backward_weight, product, "GFLOP/s");
    measure("linear_forward square", b, square, product / 4, "GFLOP/s");
    measure("linear_backward_bias", b, bias, large, "GB/s");
    measure("lookup_forward", b, look_up, 2 * small, "GB/s");
    measure("lookup_backward", b, look_up_backward, 3 * small, "GB/s");
    measure("layer_norm_forward", b, layer_norm, 2 * small, "GB/s");
    measure("layer_norm_backward +=", b, layer_norm_backward, 4 * small, "GB/s");
    measure("gelu_forward", b, gelu, 2 * large, "GB/s");
    measure("gelu_backward", b, gelu_backward, 3 * large, "GB/s");
    measure("dropout_draw", b, dropout_draw, large / 32, "GB/s");
    measure("dropout_apply", b, dropout, 2 * small, "GB/s");
    measure("gelu_dropout_forward", b, gelu_dropout, 2 * large, "GB/s");
    measure("gelu_dropout_backward", b, gelu_dropout_backward, 3 * large, "GB/s");
    measure("attention_forward", b, attention, 2 * scores, "GFLOP/s");
    measure("attention_backward", b, attention_backward, 5 * scores, "GFLOP/s");
    measure("cross_entropy", b, loss, 4.0 * SAMPLES * 5, "GB/s");
    measure("vector_fill", b, fill, small, "GB/s");
    measure("vector_copy", b, copy, 2 * small, "GB/s");
    measure("vector_add", b, add, 3 * small, "GB/s");
    measure("vector_scale", b, scale, 2 * small, "GB/s");
    measure("copy_rows half", b, columns, small, "GB/s");
    measure("sgd_step", b, sgd, 3 * weights, "GB/s");
    positive(b);
    measure("adamw_step", b, adamw, 7 * weights, "GB/s");
}

int main(int argc, char **argv)
{
    static int64_t samples[SAMPLES];
    backend_start(argv);
    backend_set_threads(argc > 1 ? atoi(argv[1]) : 1);
    puts(backend_description());
    for (int model = 0; model < 2; model++) {
        const int64_t hidden = model == 0 ? 128 : 768, heads = hidden / 64, inner = 4 * hidden;
        Bench b = {.hidden = hidden, .inner = inner, .heads = heads, .count = ROWS * hidden};
        for (int i = 0; i < BUFFERS; i++)
            b.buffer[i] = numbers(ROWS * inner > inner * hidden ? ROWS * inner : inner * hidden);
        b.table = numbers(VOCABULARY * hidden);
        b.shape = (AttentionShape){SAMPLES, POSITIONS, heads, 64, 0.125};
        b.highest = numbers(SAMPLES * heads * POSITIONS);
        b.sums = numbers(SAMPLES * heads * POSITIONS);
        b.work = numbers(kernel_attention_work(&b.shape));
        b.mask = (DropoutMask){philox_key(1, "bench", 0), 0.1, samples, POSITIONS, 0};
        b.kept = malloc((size_t)(ROWS * dropout_words(inner)) * sizeof *b.kept);
        b.ids = malloc(ROWS * sizeof *b.ids);
        b.shown = malloc(ROWS * sizeof *b.shown);
        for (int i = 0; i < ROWS; i++) {
            b.ids[i] = (int32_t)((int64_t)i * 7919 % VOCABULARY);
            b.shown[i] = 1;
        }
        measure_all(&b);
        for (int i = 0; i < BUFFERS; i++)
            free(b.buffer[i]);
        free(b.table);
        free(b.highest);
        free(b.sums);
        free(b.work);
        free(b.kept);
        free(b.ids);
        free(b.shown);
    }
    return 0;
}
