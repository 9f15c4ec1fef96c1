/* build/bench-kernels [threads [hidden positions samples]...]: measures each kernel at the sizes of
 * some models (by default, of two), and products in each precision that the backend has. GB/s
 * counts once each number that must be read or written. On a GPU, measures several calls in a row,
 * until the last has ended. Not a test: it compares nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "backend/cpu/peak.h"
#include "base/clock.h"

enum { HEAD_SIZE = 64, VOCABULARY = 30522, BUFFERS = 8, MOST_TENSORS = 32 };
enum { TIMES = 31, LEAST_TIMES = 3, IN_A_ROW = 10, MOST_SAMPLES = 1024 };
enum { LONG = 2 }; /* seconds after which LEAST_TIMES suffice */

/* The tensors of one model size. Each kernel uses what it needs from `buffer`. */
typedef struct Bench {
    int64_t samples, positions, hidden;
    int64_t rows, inner, heads, count; /* count = rows · hidden: the size of an activation */
    int64_t largest;                   /* the size of a buffer, in numbers */
    float *buffer[BUFFERS];            /* [rows, inner], or larger */
    float *table;                      /* [VOCABULARY, hidden] */
    float *squares; /* [inner, hidden], AdamW's v: not negative, and not subnormal at the end */
    float *highest, *sums, *work;
    int32_t *ids, *shown;
    DropoutMask mask;
    uint32_t *kept;            /* [rows, dropout_words(inner)] */
    uint16_t *narrow[BUFFERS]; /* copies of buffers in 16 bits */
    AttentionShape shape;
    bool on_host;          /* each call waits for its kernel */
    const char *precision; /* suffix of the names of products that are not in single precision */
} Bench;

/* ---- the tensors --------------------------------------------------------------------------------------- */

static void *tensors[MOST_TENSORS];
static int tensor_count;

/* Moves `host`, from malloc(), to memory for kernels. Returns that memory, which measure_model()
 * frees. */
static void *given(void *host, int64_t bytes)
{
    void *memory = backend_memory(bytes, DEVICE_MEMORY);
    if (!host || !memory) {
        fprintf(stderr,
                "error: out of memory: cannot allocate %.0f MB of tensors\n"
                "  HINT: name fewer samples or positions\n",
                1e-6 * (double)bytes);
        exit(2);
    }
    backend_write(memory, host, bytes);
    free(host);
    return tensors[tensor_count++] = memory;
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

/* ---- measuring ----------------------------------------------------------------------------------------- */

/* A kernel to call repeatedly; the first calls are not timed. */
typedef struct Timing {
    double first, start, seconds[TIMES];
    int calls, times;
} Timing;

/* Call this after each call. @return whether to call again */
static bool goes_on(const Bench *b, Timing *timing)
{
    const int in_a_row = b->on_host ? 1 : IN_A_ROW;
    if (timing->calls++ % in_a_row)
        return true;
    backend_wait();
    const double now = clock_now();
    if (timing->calls == 1)
        timing->first = now;
    else
        timing->seconds[timing->times++] = (now - timing->start) / in_a_row;
    timing->start = now;
    return timing->times < TIMES && (timing->times < LEAST_TIMES || now - timing->first < LONG);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_timing(const Bench *b, Timing *timing, const char *kernel, double work,
                         const char *unit)
{
    double *const seconds = timing->seconds;
    char name[64];
    qsort(seconds, (size_t)timing->times, sizeof *seconds, by_value);
    const double median = seconds[timing->times / 2];
    snprintf(name, sizeof name, "%s%s%s", kernel, *b->precision ? " " : "", b->precision);
    printf("%-27s %6ld %10.1f %10.1f %9.1f %s\n", name, (long)b->hidden, 1e6 * seconds[0],
           1e6 * median, 1e-9 * work / median, unit);
}

/* Times calls of a kernel on the Bench `b`. `work` counts bytes or floating-point operations;
 * `unit` is "GB/s" or "GFLOP/s". */
#define MEASURE(name, work, unit, call)                                                            \
    do {                                                                                           \
        Timing timing = {0};                                                                       \
        do                                                                                         \
            call;                                                                                  \
        while (goes_on(b, &timing));                                                               \
        print_timing(b, &timing, name, work, unit);                                                \
    } while (0)

/* The operations of a product of an inner layer, and of a product in attention. */
static double product_of(const Bench *b)
{
    return 2.0 * (double)(b->rows * b->inner * b->hidden);
}

static double scores_of(const Bench *b)
{
    return 2.0 * (double)(b->samples * b->heads * b->positions * b->positions * HEAD_SIZE);
}

/* ---- the kernels --------------------------------------------------------------------------------------- */

/* The products of linear layers and of attention, and the rounding to 16 bits. */
static void measure_products(const Bench *b)
{
    const bool in_16_bits = precision_is_16_bits(backend_products());
    const double product = product_of(b), scores = scores_of(b);
    Numbers x[BUFFERS];
    for (int i = 0; i < BUFFERS; i++)
        x[i] = in_16_bits ? (Numbers){.halves = b->narrow[i]} : in_full(b->buffer[i]);
    for (int i = 0; i < BUFFERS && in_16_bits; i++)
        kernel_round(b->largest, b->buffer[i], b->narrow[i]);
    if (in_16_bits)
        MEASURE("round", 6.0 * (double)b->count, "GB/s",
                kernel_round(b->count, b->buffer[0], b->narrow[0]));
    MEASURE("linear_forward up", product, "GFLOP/s",
            kernel_linear_forward(b->rows, b->hidden, b->inner, x[0], x[1], b->buffer[2], x[3]));
    MEASURE("linear_backward_input", product, "GFLOP/s",
            kernel_linear_backward_input(b->rows, b->hidden, b->inner, x[0], x[1], x[3], false));
    MEASURE("linear_backward_weight", product, "GFLOP/s",
            kernel_linear_backward_weight(b->rows, b->hidden, b->inner, x[0], x[1], b->buffer[3],
                                          false));
    MEASURE("linear_forward square", product / 4, "GFLOP/s",
            kernel_linear_forward(b->rows, b->hidden, b->hidden, x[0], x[1], b->buffer[2], x[3]));
    if (in_16_bits && !kernel_attention_is_in_16_bits(&b->shape))
        return;
    MEASURE("attention_forward", 2 * scores, "GFLOP/s",
            kernel_attention_forward(&b->shape, x[0], x[1], x[2], b->shown, x[3], b->highest,
                                     b->sums, b->work));
    MEASURE("attention_backward", 5 * scores, "GFLOP/s",
            kernel_attention_backward(&b->shape, x[0], x[1], x[2], b->shown, b->highest, b->sums,
                                      x[3], x[4], x[5], x[6], b->work));
}

/* The operations between an inner layer's products. */
static void measure_activations(const Bench *b)
{
    const bool in_16_bits = precision_is_16_bits(backend_products());
    const int64_t inner = b->rows * b->inner;
    const double large = (in_16_bits ? 2.0 : 4.0) * (double)inner, kept = b->mask.probability;
    Numbers x[3];
    for (int i = 0; i < 3; i++)
        x[i] = in_16_bits ? (Numbers){.halves = b->narrow[i]} : in_full(b->buffer[i]);
    MEASURE("linear_backward_bias", large, "GB/s",
            kernel_linear_backward_bias(b->rows, b->inner, x[0], b->buffer[1]));
    MEASURE("gelu_forward", 2 * large, "GB/s", kernel_gelu_forward(inner, x[0], x[1]));
    MEASURE("gelu_backward", 3 * large, "GB/s", kernel_gelu_backward(inner, x[0], x[1], x[2]));
    MEASURE("gelu_dropout_forward", 2 * large, "GB/s",
            kernel_dropout(GELU_DROPOUT, b->rows, b->inner, kept, b->kept, x[0], x[0], x[1]));
    MEASURE(
        "gelu_dropout_backward", 3 * large, "GB/s",
        kernel_dropout(GELU_DROPOUT_BACKWARD, b->rows, b->inner, kept, b->kept, x[0], x[1], x[2]));
}

/* Kernels bound by memory bandwidth; and the bandwidth itself, by reading and writing a table that
 * is larger than the caches. */
static void measure_layers(const Bench *b)
{
    float *const *x = b->buffer;
    const double small = 4.0 * (double)b->count, large = 4.0 * (double)(b->rows * b->inner);
    const int64_t words = VOCABULARY * b->hidden;
    const double kept = b->mask.probability;
    if (b->on_host)
        MEASURE("peak of one core", PEAK_OPERATIONS, "GFLOP/s", multiply_add(x[0]));
    MEASURE(b->on_host ? "memory of one core" : "memory", 8.0 * (double)words, "GB/s",
            kernel_vector_scale(words, -1.0, b->table));
    MEASURE("lookup_forward", 2 * small, "GB/s",
            kernel_lookup_forward(b->rows, b->hidden, b->ids, in_full(b->table), in_full(x[0])));
    MEASURE("lookup_backward", 3 * small, "GB/s",
            kernel_lookup_backward(b->rows, b->hidden, b->ids, x[0], b->table));
    MEASURE("layer_norm_forward", 2 * small, "GB/s",
            kernel_layer_norm_forward(b->rows, b->hidden, x[0], x[1], x[2], 1e-5, in_full(x[3]),
                                      x[4], x[5]));
    MEASURE("layer_norm_backward +=", 4 * small, "GB/s",
            kernel_layer_norm_backward(b->rows, b->hidden, x[0], x[1], x[2], x[4], x[5], x[3], true,
                                       x[6], x[7]));
    MEASURE("dropout_draw", large / 32, "GB/s",
            kernel_dropout_draw(b->rows, b->inner, &b->mask, b->kept));
    MEASURE("dropout_apply", 2 * small, "GB/s",
            kernel_dropout(DROPOUT, b->rows, b->hidden, kept, b->kept, (Numbers){0}, in_full(x[0]),
                           in_full(x[1])));
    MEASURE("cross_entropy", 4.0 * (double)b->samples * 5, "GB/s",
            kernel_cross_entropy(b->samples, 2, x[0], b->shown, x[1], x[2]));
}

static void measure_vectors(const Bench *b)
{
    float *const *x = b->buffer;
    const AdamW step = {1e-3, 0.9, 0.999, 1e-8, 0.01, 10, NULL};
    const int64_t half = b->hidden / 2, count = b->inner * b->hidden;
    const double small = 4.0 * (double)b->count, weights = 4.0 * (double)count;
    MEASURE("vector_fill", small, "GB/s", kernel_vector_fill(b->count, 0, x[0]));
    MEASURE("vector_copy", 2 * small, "GB/s", kernel_vector_copy(b->count, x[0], x[1]));
    MEASURE("vector_add", 3 * small, "GB/s",
            kernel_vector_add(b->count, x[0], in_full(x[1]), x[2]));
    MEASURE("vector_scale", 2 * small, "GB/s", kernel_vector_scale(b->count, -1.0, x[0]));
    MEASURE("copy_rows half", small, "GB/s",
            kernel_copy_rows(b->rows, half, x[0], b->hidden, x[1], half));
    MEASURE("sgd_step", 3 * weights, "GB/s", kernel_sgd_step(count, x[0], x[1], 1e-3, 0.01));
    MEASURE("adamw_step", 7 * weights, "GB/s",
            kernel_adamw_step(count, x[0], x[1], x[2], b->squares, &step));
}

/* Measures products in each precision that the backend has, then the other kernels. */
static void measure_all(Bench *b)
{
    Problem problem;
    printf("\n%-27s %6s %10s %10s %9s\n", "kernel", "hidden", "min us", "median us", "rate");
    for (Precision precision = FP32; precision <= TF32; precision++) {
        if (!backend_set_products(precision, b->hidden, &problem))
            continue;
        b->precision = precision == FP32 ? "" : precision_name(precision);
        b->work = numbers(kernel_attention_work(&b->shape) + 1);
        measure_products(b);
        if (precision != TF32)
            measure_activations(b);
        backend_set_products(FP32, b->hidden, &problem);
    }
    b->precision = "";
    measure_layers(b);
    measure_vectors(b);
}

static void measure_model(int64_t hidden, int64_t positions, int64_t samples)
{
    static int64_t sample_numbers[MOST_SAMPLES];
    const int64_t rows = samples * positions, heads = hidden / HEAD_SIZE, inner = 4 * hidden;
    const int64_t weights = inner * hidden;
    Bench b = {.samples = samples, .positions = positions, .hidden = hidden};
    b.rows = rows, b.heads = heads, b.inner = inner, b.count = rows * hidden;
    b.shape = (AttentionShape){samples, positions, heads, HEAD_SIZE, 0.125, false, 0};
    b.mask = (DropoutMask){philox_key(1, "bench", 0), 0.1, sample_numbers, positions, 0, 0};
    b.largest = rows * inner > weights ? rows * inner : weights;
    for (int i = 0; i < BUFFERS; i++)
        b.buffer[i] = numbers(b.largest);
    for (int i = 0; i < BUFFERS; i++)
        b.narrow[i] = (uint16_t *)integers(b.largest / 2, 0, 2); /* inner is even */
    b.table = numbers(VOCABULARY * hidden);
    b.squares = numbers(weights);
    kernel_vector_fill(weights, 0.5, b.squares);
    b.highest = numbers(rows * heads);
    b.sums = numbers(rows * heads);
    b.kept = (uint32_t *)integers(rows * dropout_words(inner), 0, 2);
    b.ids = integers(rows, 7919, VOCABULARY);
    b.shown = integers(rows, 0, 2);
    b.on_host = backend_on_host(b.table) != NULL;
    measure_all(&b);
    while (tensor_count)
        backend_memory_free(tensors[--tensor_count], DEVICE_MEMORY);
}

int main(int argc, char **argv)
{
    char *usual[] = {"128", "128", "8", "768", "128", "8"};
    const int given_sizes = (argc - 2) / 3;
    const int count = given_sizes > 0 ? given_sizes : 2;
    backend_start(argv);
    backend_set_threads(argc > 1 ? atoi(argv[1]) : 1);
    puts(backend_description());
    for (int i = 0; i < count; i++) {
        char **const size = (given_sizes > 0 ? argv + 2 : usual) + 3 * i;
        const int64_t hidden = atol(size[0]), positions = atol(size[1]), samples = atol(size[2]);
        if (hidden < HEAD_SIZE || hidden % HEAD_SIZE || positions < 1 || samples < 1 ||
            samples > MOST_SAMPLES) {
            fprintf(
                stderr,
                "error: there are no kernels for hidden %s, %s positions, %s samples\n"
                "  HINT: hidden is a multiple of %d, positions are 1 or more, samples 1 to %d\n",
                size[0], size[1], size[2], HEAD_SIZE, MOST_SAMPLES);
            return 2;
        }
        measure_model(hidden, positions, samples);
    }
    return 0;
}
