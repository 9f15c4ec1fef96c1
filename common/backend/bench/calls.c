/* The calls of kernels that build/bench-kernels measures. */
#include "backend/bench/calls.h"

#include <string.h>

#include "backend/cpu/kernel.h"

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
int calls_rounded(const Bench *b, Call calls[MOST_CALLS])
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

int calls_not_rounded(const Bench *b, bool on_host, Call calls[MOST_CALLS])
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
