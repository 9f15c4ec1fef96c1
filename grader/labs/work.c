/* Counts the multiply-adds, the masks and the memory of a pass, in wrapped kernels. */
#include "grader/labs/work.h"

#include "backend/backend.h"
#include "grader/labs/scenario.h"

/* Kernels get no context. */
static struct {
    int64_t linear, attention; /* multiply-adds */
    int64_t drawn;             /* numbers that dropout keeps or drops */
    int64_t held;              /* bytes, before the pass */
} done;

void work_begin(Scenario *run)
{
    done.linear = done.attention = done.drawn = 0;
    done.held = memory_use().total;
    memory_begin_peak();
    own_work_begin();
}

void work_end(Scenario *run, Label label)
{
    double *numbers;
    MemoryUse use = memory_use();
    OwnWork own = own_work();
    stream_entry(&run->stream, WORK, ARITHMETIC, label, WORK_NUMBERS, &numbers)->address =
        own.address;
    numbers[LINEAR_WORK] = (double)done.linear;
    numbers[ATTENTION_WORK] = (double)done.attention;
    numbers[PARAMETERS_HELD] = (double)(use.now[WEIGHTS] + use.now[GRADIENTS]) / sizeof(real);
    numbers[TAKEN] = (double)(use.peak_total - done.held) / sizeof(real);
    numbers[KEPT] = (double)(use.total - done.held) / sizeof(real);
    numbers[OWN_MEMORY] = (double)own.bytes / sizeof(real);
    numbers[EARLIER_MEMORY] = (double)own.earlier / sizeof(real);
    numbers[DRAWN] = (double)done.drawn;
    numbers[RAW_LOOKS] = (double)own.looks;
}

int64_t work_so_far(void)
{
    return done.linear + done.attention;
}

#define COUNTED(name, ...)                                                                         \
    void __real_##name(__VA_ARGS__);                                                               \
    void __wrap_##name(__VA_ARGS__);                                                               \
    void __wrap_##name(__VA_ARGS__)

COUNTED(kernel_linear_forward, int64_t rows, int64_t in, int64_t out, Numbers x, Numbers weight,
        const real *bias, Numbers y)
{
    done.linear += rows * in * out;
    __real_kernel_linear_forward(rows, in, out, x, weight, bias, y);
}

COUNTED(kernel_linear_backward_input, int64_t rows, int64_t in, int64_t out, Numbers dy,
        Numbers weight, Numbers dx, bool accumulate)
{
    done.linear += rows * in * out;
    __real_kernel_linear_backward_input(rows, in, out, dy, weight, dx, accumulate);
}

COUNTED(kernel_linear_backward_weight, int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers x,
        real *dweight, bool accumulate)
{
    done.linear += rows * in * out;
    __real_kernel_linear_backward_weight(rows, in, out, dy, x, dweight, accumulate);
}

COUNTED(kernel_dropout_draw, int64_t rows, int64_t columns, const DropoutMask *mask, uint32_t *kept)
{
    done.drawn += rows * columns;
    __real_kernel_dropout_draw(rows, columns, mask, kept);
}

/* The multiply-adds of q k^T, or of scores times v, for the keys that are not in a query's future. */
static int64_t attention_product(const AttentionShape *shape)
{
    const int64_t queries = shape->positions, each = shape->batch * shape->heads * shape->head_size;
    const int64_t own = shape->causal ? queries * (queries + 1) / 2 : queries * queries;
    return each * (queries * shape->past + own);
}

COUNTED(kernel_attention_forward, const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
        const int32_t *mask, Numbers y, real *highest, real *sums, real *work)
{
    done.attention += 2 * attention_product(shape);
    __real_kernel_attention_forward(shape, q, k, v, mask, y, highest, sums, work);
}

COUNTED(kernel_attention_backward, const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
        const int32_t *mask, const real *highest, const real *sums, Numbers dy, Numbers dq,
        Numbers dk, Numbers dv, real *work)
{
    done.attention += 5 * attention_product(shape);
    __real_kernel_attention_backward(shape, q, k, v, mask, highest, sums, dy, dq, dk, dv, work);
}
