/* build/bench-kernels [threads [hidden positions samples]...]: how fast each kernel runs at the sizes of some models (without any: of
 * two), products in each precision that the backend has. GB/s counts each number that must be read or written once. Linked with
 * the kernels of a GPU: of several calls in a row, until the last has ended; what a product finds rounded by the call before is not
 * rounded again. Not a test: nothing is compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "base/clock.h"

enum { HEAD_SIZE = 64, VOCABULARY = 30522, BUFFERS = 8, MOST_CALLS = 32 };
enum { TIMES = 31, LEAST_TIMES = 3, IN_A_ROW = 10, MOST_SAMPLES = 1024 };
enum { LONG = 2 }; /* seconds after which LEAST_TIMES are enough */

/* The tensors of one model size. Each kernel takes from `buffer` what it needs. */
typedef struct Bench {
    int64_t samples, positions, hidden;
    int64_t rows, inner, heads, count; /* count = rows · hidden, the size of an activation */
    float *buffer[BUFFERS];            /* [rows, inner], or larger */
    float *table;                      /* [VOCABULARY, hidden] */
    float *squares; /* [inner, hidden], AdamW's v: not negative, nor subnormal in the end */
    float *highest, *sums, *work;
    int32_t *ids, *shown;
    DropoutMask mask;
    uint32_t *kept;   /* [rows, dropout_words(inner)] */
    uint16_t *narrow; /* room for the weights of a product in 16 bits */
    AttentionShape shape;
} Bench;

/* One kernel, and its work in bytes or floating-point operations, which `unit` names by the thousand millions. */
typedef struct Call {
    const char *name;
    void (*kernel)(Bench *);
    double work;
    const char *unit;
} Call;

/* ---- the calls ----------------------------------------------------------------------------------------- */

/* A function of this name that calls a kernel on what a Bench holds. */
#define CALL(name, call)                                                                           \
    static void name(Bench *b)                                                                     \
    {                                                                                              \
        call;                                                                                      \
    }

CALL(up, kernel_linear_forward(b->rows, b->hidden, b->inner, b->buffer[0], b->buffer[1],
                               b->buffer[2], b->buffer[3]))
CALL(up_backward_input, kernel_linear_backward_input(b->rows, b->hidden, b->inner, b->buffer[0],
                                                     b->buffer[1], b->buffer[3], false))
CALL(up_backward_weight, kernel_linear_backward_weight(b->rows, b->hidden, b->inner, b->buffer[0],
                                                       b->buffer[1], b->buffer[3], false))
CALL(square, kernel_linear_forward(b->rows, b->hidden, b->hidden, b->buffer[0], b->buffer[1],
                                   b->buffer[2], b->buffer[3]))
CALL(bias, kernel_linear_backward_bias(b->rows, b->inner, b->buffer[0], b->buffer[1]))
CALL(look_up, kernel_lookup_forward(b->rows, b->hidden, b->ids, b->table, b->buffer[0]))
CALL(look_up_backward, kernel_lookup_backward(b->rows, b->hidden, b->ids, b->buffer[0], b->table))
CALL(layer_norm,
     kernel_layer_norm_forward(b->rows, b->hidden, b->buffer[0], b->buffer[1], b->buffer[2], 1e-5,
                               b->buffer[3], b->buffer[4], b->buffer[5]))
CALL(layer_norm_backward,
     kernel_layer_norm_backward(b->rows, b->hidden, b->buffer[0], b->buffer[1], b->buffer[2],
                                b->buffer[4], b->buffer[5], b->buffer[3], true, b->buffer[6],
                                b->buffer[7]))
CALL(gelu, kernel_gelu_forward(b->rows * b->inner, b->buffer[0], b->buffer[1]))
CALL(gelu_backward,
     kernel_gelu_backward(b->rows * b->inner, b->buffer[0], b->buffer[1], b->buffer[2]))
CALL(dropout_draw, kernel_dropout_draw(b->rows, b->inner, &b->mask, b->kept))
CALL(dropout, kernel_dropout(DROPOUT, b->rows, b->hidden, b->mask.probability, b->kept, NULL,
                             b->buffer[0], b->buffer[1]))
CALL(gelu_dropout, kernel_dropout(GELU_DROPOUT, b->rows, b->inner, b->mask.probability, b->kept,
                                  NULL, b->buffer[0], b->buffer[1]))
CALL(gelu_dropout_backward,
     kernel_dropout(GELU_DROPOUT_BACKWARD, b->rows, b->inner, b->mask.probability, b->kept,
                    b->buffer[0], b->buffer[1], b->buffer[2]))
CALL(attention, kernel_attention_forward(&b->shape, b->buffer[0], b->buffer[1], b->buffer[2],
                                         b->shown, b->buffer[3], b->highest, b->sums, b->work))
CALL(attention_backward,
     kernel_attention_backward(&b->shape, b->buffer[0], b->buffer[1], b->buffer[2], b->shown,
                               b->highest, b->sums, b->buffer[3], b->buffer[4], b->buffer[5],
                               b->buffer[6], b->work))
CALL(loss, kernel_cross_entropy(b->samples, 2, b->buffer[0], b->shown, b->buffer[1], b->buffer[2]))
CALL(fill, kernel_vector_fill(b->count, 0, b->buffer[0]))
CALL(copy, kernel_vector_copy(b->count, b->buffer[0], b->buffer[1]))
CALL(add, kernel_vector_add(b->count, b->buffer[0], b->buffer[1], b->buffer[2]))
CALL(scale, kernel_vector_scale(b->count, -1.0, b->buffer[0]))
CALL(columns,
     kernel_copy_rows(b->rows, b->hidden / 2, b->buffer[0], b->hidden, b->buffer[1], b->hidden / 2))
CALL(sgd, kernel_sgd_step(b->inner * b->hidden, b->buffer[0], b->buffer[1], 1e-3, 0.01))

static void adamw(Bench *b)
{
    const AdamW step = {1e-3, 0.9, 0.999, 1e-8, 0.01, 10, NULL};
    kernel_adamw_step(b->inner * b->hidden, b->buffer[0], b->buffer[1], b->buffer[2], b->squares,
                      &step);
}

/* The peak: multiply-adds in registers, 24 chains of them, since each waits for the one before. */
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

CALL(peak, multiply_add(b->buffer[0]))
/* The memory: a table that is larger than the caches, read and written. */
CALL(memory, kernel_vector_scale(VOCABULARY * b->hidden, -1.0, b->table))

/* What may be rounded (see backend_set_products()). @return how many there are */
static int calls_rounded(const Bench *b, Call calls[MOST_CALLS])
{
    const double product = 2.0 * (double)(b->rows * b->inner * b->hidden);
    const double scores =
        2.0 * (double)(b->samples * b->heads * b->positions * b->positions * HEAD_SIZE);
    const Call all[] = {{"linear_forward up", up, product, "GFLOP/s"},
                        {"linear_backward_input", up_backward_input, product, "GFLOP/s"},
                        {"linear_backward_weight", up_backward_weight, product, "GFLOP/s"},
                        {"linear_forward square", square, product / 4, "GFLOP/s"},
                        {"attention_forward", attention, 2 * scores, "GFLOP/s"},
                        {"attention_backward", attention_backward, 5 * scores, "GFLOP/s"}};
    memcpy(calls, all, sizeof all);
    return sizeof all / sizeof *all;
}

/* All others. `on_host`: a kernel has ended when its call returns; then the peak of a core comes first. */
static int calls_not_rounded(const Bench *b, bool on_host, Call calls[MOST_CALLS])
{
    const double small = 4.0 * (double)b->count, large = 4.0 * (double)(b->rows * b->inner);
    const double weights = 4.0 * (double)(b->inner * b->hidden);
    const Call all[] = {
        {"peak of one core", peak, 2.0 * CHAINS * LANES * TURNS, "GFLOP/s"},
        {on_host ? "memory of one core" : "memory", memory, 8.0 * VOCABULARY * (double)b->hidden,
         "GB/s"},
        {"linear_backward_bias", bias, large, "GB/s"},
        {"lookup_forward", look_up, 2 * small, "GB/s"},
        {"lookup_backward", look_up_backward, 3 * small, "GB/s"},
        {"layer_norm_forward", layer_norm, 2 * small, "GB/s"},
        {"layer_norm_backward +=", layer_norm_backward, 4 * small, "GB/s"},
        {"gelu_forward", gelu, 2 * large, "GB/s"},
        {"gelu_backward", gelu_backward, 3 * large, "GB/s"},
        {"dropout_draw", dropout_draw, large / 32, "GB/s"},
        {"dropout_apply", dropout, 2 * small, "GB/s"},
        {"gelu_dropout_forward", gelu_dropout, 2 * large, "GB/s"},
        {"gelu_dropout_backward", gelu_dropout_backward, 3 * large, "GB/s"},
        {"cross_entropy", loss, 4.0 * (double)b->samples * 5, "GB/s"},
        {"vector_fill", fill, small, "GB/s"},
        {"vector_copy", copy, 2 * small, "GB/s"},
        {"vector_add", add, 3 * small, "GB/s"},
        {"vector_scale", scale, 2 * small, "GB/s"},
        {"copy_rows half", columns, small, "GB/s"},
        {"sgd_step", sgd, 3 * weights, "GB/s"},
        {"adamw_step", adamw, 7 * weights, "GB/s"},
    };
    const int left_out = on_host ? 0 : 1, count = sizeof all / sizeof *all - left_out;
    memcpy(calls, all + left_out, (size_t)count * sizeof *all);
    return count;
}

/* ---- measuring ----------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Has a kernel ended when its call returns? */
static bool on_host(const Bench *bench)
{
    return backend_on_host(bench->table) != NULL;
}

static void measure(const Call *call, const char *precision, Bench *bench)
{
    double seconds[TIMES];
    char name[64];
    const int calls = on_host(bench) ? 1 : IN_A_ROW;
    call->kernel(bench);
    backend_wait();
    int times = 0;
    for (const double first = clock_now();
         times < TIMES && (times < LEAST_TIMES || clock_now() - first < LONG); times++) {
        const double start = clock_now();
        for (int k = 0; k < calls; k++)
            call->kernel(bench);
        backend_wait();
        seconds[times] = (clock_now() - start) / calls;
    }
    qsort(seconds, (size_t)times, sizeof *seconds, by_value);
    const double median = seconds[times / 2];
    snprintf(name, sizeof name, "%s%s%s", call->name, *precision ? " " : "", precision);
    printf("%-27s %6ld %10.1f %10.1f %9.1f %s\n", name, (long)bench->hidden, 1e6 * seconds[0],
           1e6 * median, 1e-9 * call->work / median, call->unit);
}

/* Memory for kernels with these contents, of the host. */
static void *given(void *host, int64_t bytes)
{
    void *memory = backend_memory(bytes, DEVICE_MEMORY);
    if (!host || !memory) {
        fprintf(stderr, "error: there are no %.0f MB\n  HINT: name fewer samples or positions\n",
                1e-6 * (double)bytes);
        exit(2);
    }
    backend_write(memory, host, bytes);
    free(host);
    return memory;
}

static float *numbers(int64_t count)
{
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(i * 7919 % 1024) / 512.0f - 1.0f;
    return given(x, count * (int64_t)sizeof *x);
}

static int32_t *integers(int64_t count, int64_t step, int32_t below)
{
    int32_t *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (int32_t)((1 + i * step) % below);
    return given(x, count * (int64_t)sizeof *x);
}

/* Lines bear the name of a precision. Weights that are known are rounded once, as in training. */
static void measure_products(Bench *b, Precision precision)
{
    Call calls[MOST_CALLS];
    Problem problem;
    if (!backend_set_products(precision, b->hidden, &problem))
        return; /* this backend has none */
    if (precision != FP32)
        backend_set_weights(b->buffer[1], b->inner * b->hidden, b->narrow);
    const int count = calls_rounded(b, calls);
    for (int i = 0; i < count; i++)
        measure(&calls[i], precision == FP32 ? "" : precision_name(precision), b);
    backend_set_weights(NULL, 0, NULL);
    backend_set_products(FP32, b->hidden, &problem);
}

static void measure_all(Bench *b)
{
    Call calls[MOST_CALLS];
    printf("\n%-27s %6s %10s %10s %9s\n", "kernel", "hidden", "min us", "median us", "rate");
    for (Precision precision = FP32; precision <= TF32; precision++)
        measure_products(b, precision);
    const int count = calls_not_rounded(b, on_host(b), calls);
    for (int i = 0; i < count; i++)
        measure(&calls[i], "", b);
}

static void measure_model(int64_t hidden, int64_t positions, int64_t samples)
{
    static int64_t sample_numbers[MOST_SAMPLES];
    const int64_t rows = samples * positions, heads = hidden / HEAD_SIZE, inner = 4 * hidden;
    const int64_t weights = inner * hidden;
    Bench b = {.samples = samples, .positions = positions, .hidden = hidden};
    b.rows = rows, b.heads = heads, b.inner = inner, b.count = rows * hidden;
    b.shape = (AttentionShape){samples, positions, heads, HEAD_SIZE, 0.125};
    b.mask = (DropoutMask){philox_key(1, "bench", 0), 0.1, sample_numbers, positions, 0};
    for (int i = 0; i < BUFFERS; i++)
        b.buffer[i] = numbers(rows * inner > weights ? rows * inner : weights);
    b.table = numbers(VOCABULARY * hidden);
    b.squares = numbers(weights);
    kernel_vector_fill(weights, 0.5, b.squares);
    b.highest = numbers(rows * heads);
    b.sums = numbers(rows * heads);
    b.work = numbers(kernel_attention_work(&b.shape) + 1);
    b.kept = (uint32_t *)integers(rows * dropout_words(inner), 0, 2);
    b.narrow = (uint16_t *)integers(weights, 0, 2);
    b.ids = integers(rows, 7919, VOCABULARY);
    b.shown = integers(rows, 0, 2);
    measure_all(&b);
    void *const taken[] = {b.table, b.squares, b.highest, b.sums, b.work,
                           b.kept,  b.narrow,  b.ids,     b.shown};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        backend_memory_free(taken[i], DEVICE_MEMORY);
    for (int i = 0; i < BUFFERS; i++)
        backend_memory_free(b.buffer[i], DEVICE_MEMORY);
}

int main(int argc, char **argv)
{
    int64_t sizes[][3] = {{128, 128, 8}, {768, 128, 8}};
    backend_start(argv);
    backend_set_threads(argc > 1 ? atoi(argv[1]) : 1);
    puts(backend_description());
    for (int model = 0; argc < 5 && model < 2; model++)
        measure_model(sizes[model][0], sizes[model][1], sizes[model][2]);
    for (int i = 2; i + 2 < argc; i += 3) {
        const int64_t hidden = atol(argv[i]), positions = atol(argv[i + 1]),
                      samples = atol(argv[i + 2]);
        if (hidden < HEAD_SIZE || hidden % HEAD_SIZE || positions < 1 || samples < 1 ||
            samples > MOST_SAMPLES) {
            fprintf(
                stderr,
                "error: no kernels of hidden %s, %s positions, %s samples\n  HINT: a multiple of %d, 1 "
                "or more, 1 to %d\n",
                argv[i], argv[i + 1], argv[i + 2], HEAD_SIZE, MOST_SAMPLES);
            return 2;
        }
        measure_model(hidden, positions, samples);
    }
    return 0;
}
