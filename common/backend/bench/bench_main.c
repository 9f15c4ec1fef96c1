/* build/bench-kernels [threads [hidden positions samples]...]: how fast each kernel runs at the sizes of some models (without any: of
 * two), products in each precision that the backend has. GB/s counts each number that must be read or written once. Linked with
 * the kernels of a GPU: of several calls in a row, until the last has ended; what a product finds rounded by the call before is not
 * rounded again. Not a test: nothing is compared. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/bench/calls.h"
#include "base/clock.h"

enum { TIMES = 31, LEAST_TIMES = 3, IN_A_ROW = 10, MOST_SAMPLES = 1024 };
enum { LONG = 2 }; /* seconds after which LEAST_TIMES are enough */

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
