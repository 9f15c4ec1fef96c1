/* Products by cuBLAS, and the 16-bit matrices for them. */
#include <climits>

#include <cublas_v2.h>

#include "backend/cuda/device.cuh"
#include "backend/cuda/tensor_cores.cuh"
#include "base/language.h"
#include "base/run.h"

/* cuBLAS stores matrices by columns, so it sees the transposes of ours: y^T = W x^T. */

static Precision precision = FP32;

static void check(cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        misuse("out of memory? a smaller BATCH_SIZE or SEQ needs less",
               "a matrix product failed in cuBLAS: %s", cublasGetStatusString(status));
}

static cublasHandle_t library(void)
{
    static cublasHandle_t handle;
    static bool open = false;
    if (!open) {
        cudaStream_t stream = device_stream();
        check(cublasCreate(&handle));
        check(cublasSetStream(handle, stream));
        open = true;
    }
    return handle;
}

bool backend_set_products(Precision wanted, int64_t width, Problem *problem)
{
    if (wanted == FP16 && device_generation() < 75)
        return problem_set(problem, NULL, "AMP=off works on this GPU",
                           "AMP=fp16 needs a GPU of compute capability 7.5 or later");
    if ((wanted == BF16 || wanted == TF32) && device_generation() < 80)
        return problem_set(problem, NULL,
                           device_generation() < 75 ? N_("AMP=off works on this GPU")
                                                    : N_("AMP=fp16 works on this GPU"),
                           "AMP=%s needs a GPU of compute capability 8.0 or later",
                           precision_name(wanted));
    precision = wanted;
    device_changed(); /* existing copies are of the old precision */
    return true;
}

Precision products_precision(void)
{
    return precision;
}

/* ---- matrices in 16 bits -------------------------------------------------------------------------------- */

/* Weights are rounded once per step. Copies of other matrices are kept, because a product of the
 * same matrix usually follows: x times the weights of q, k and v; dy times W, and dy times x. */

static struct {
    const real *begin, *end;
    const uint16_t *rounded;
} weights;

/* A 16-bit copy of x [count]. It is up to date while device_changes() is `good_at` and
 * device_waits() is `waited`, because the host may write after each wait. */
typedef struct Copy {
    const real *x;
    int64_t count;
    uint64_t good_at, waited, used;
} Copy;

/* ALIGNED: copies begin at multiples of this many numbers: tensor cores need rows at cache lines */
enum { COPIES = 3, ALIGNED = 128 };
static struct {
    DeviceRoom room;
    int64_t each; /* numbers between two copies */
    uint64_t uses;
    Copy copy[COPIES];
} copies;

__global__ static void round_to_16(int64_t count, bool fp16, const float *x, uint16_t *y)
{
    FOR_EACH(i, count) y[i] = fp16 ? to_16_bits<true>(x[i]) : to_16_bits<false>(x[i]);
}

static void round_numbers(int64_t count, const real *x, uint16_t *y)
{
    launch_for("round to 16 bits", count, round_to_16, count, products_precision() == FP16, x, y);
}

void backend_set_weights(const real *first, int64_t count, uint16_t *room)
{
    weights = {first, first + count, room};
    round_numbers(count, first, room);
}

void backend_round_once(const real *x)
{
} /* device_changes() tells whether a copy is up to date */

/* Makes room for copies of this many numbers each; may discard existing copies. */
static void rounded_room(int64_t count)
{
    const int64_t each = (count + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (each <= copies.each)
        return;
    for (Copy &copy : copies.copy)
        copy = {};
    copies.each = each;
    device_room(&copies.room, COPIES * each * (int64_t)sizeof(uint16_t));
}

/* Notes that the stream's work since device_changes() was `before` wrote only to c [count], so
 * copies of other matrices stay up to date. */
static void rounded_copies_outlive(uint64_t before, const real *c, int64_t count)
{
    for (Copy &copy : copies.copy)
        if (copy.x && copy.good_at == before && (c + count <= copy.x || copy.x + copy.count <= c))
            copy.good_at = device_changes();
}

static bool is_good(const Copy *copy, const real *x, int64_t count)
{
    return copy->x == x && copy->count == count && copy->good_at == device_changes() &&
           copy->waited == device_waits();
}

/* The copy of x, or the least recently used one. */
static Copy *copy_for(const real *x, int64_t count)
{
    Copy *oldest = &copies.copy[0];
    for (Copy &copy : copies.copy) {
        if (is_good(&copy, x, count))
            return &copy;
        oldest = copy.used < oldest->used ? &copy : oldest;
    }
    return oldest;
}

/* x [count] in 16 bits, kept for the next call. x may have changed since the last call. */
static const uint16_t *rounded_copy(const real *x, int64_t count)
{
    if (weights.begin && x >= weights.begin && x + count <= weights.end)
        return weights.rounded + (x - weights.begin);
    Copy *copy = copy_for(x, count);
    uint16_t *room =
        static_cast<uint16_t *>(copies.room.memory) + (copy - copies.copy) * copies.each;
    if (!is_good(copy, x, count)) {
        const uint64_t before = device_changes();
        copy->x = NULL;
        round_numbers(count, x, room);
        rounded_copies_outlive(before, NULL, 0);
        *copy = {x, count, device_changes(), device_waits(), 0};
    }
    copy->used = ++copies.uses;
    return room;
}

/* ---- products -------------------------------------------------------------------------------------------- */

typedef struct Matrix {
    const real *numbers;
    int64_t rows, columns; /* as stored, by rows */
    cublasOperation_t flag;
} Matrix;

static int checked(int64_t size)
{
    if (size > INT_MAX)
        misuse("choose a smaller BATCH_SIZE",
               "a matrix of %lld rows or columns is too large for cuBLAS", (long long)size);
    return (int)size;
}

/* cuBLAS requires at least 1, even for a matrix without numbers. */
static int64_t stride_of(Matrix matrix)
{
    return matrix.columns > 0 ? matrix.columns : 1;
}

/* c [columns,rows] by rows (that is, [rows,columns] by columns) = a · b, added to c if
 * `accumulate`. */
static void multiply(int64_t rows, int64_t columns, int64_t inner, Matrix a, Matrix b,
                     bool accumulate, real *c)
{
    const float one = 1, kept = accumulate ? 1 : 0;
    const void *left = a.numbers, *right = b.numbers;
    cudaDataType_t type = CUDA_R_32F;
    if (rows * columns == 0)
        return;
    if (precision_is_16_bits(precision) && rows * columns * inner >= BF16_LEAST) {
        const int64_t a_count = a.rows * a.columns, b_count = b.rows * b.columns;
        rounded_room(a_count > b_count ? a_count : b_count);
        left = rounded_copy(a.numbers, a_count);
        right = rounded_copy(b.numbers, b_count);
        type = precision == FP16 ? CUDA_R_16F : CUDA_R_16BF;
    }
    const uint64_t before = device_changes();
    cublasHandle_t handle = library();
    {
        const DeviceCall call;
        check(cublasGemmEx(handle, a.flag, b.flag, checked(rows), checked(columns), checked(inner),
                           &one, left, type, checked(stride_of(a)), right, type,
                           checked(stride_of(b)), &kept, c, CUDA_R_32F, checked(rows),
                           precision == TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT));
    }
    device_started("matrix product");
    rounded_copies_outlive(before, c, rows * columns);
}

/* A product opens cuBLAS and loads its kernels. */
bool backend_open_all(void)
{
    real *x = (real *)backend_memory(3 * (int64_t)sizeof *x, HOST_MEMORY);
    backend_set_bytes(x, 0, 3 * (int64_t)sizeof *x);
    kernel_linear_forward(1, 1, 1, x, x + 1, NULL, x + 2);
    backend_wait();
    backend_memory_free(x, HOST_MEMORY);
    return true;
}

__global__ static void repeat_row(int64_t rows, int64_t columns, const float *row, float *y)
{
    FOR_EACH(i, rows * columns) y[i] = row[i % columns];
}

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y)
{
    if (bias) {
        const uint64_t before = device_changes();
        launch_for("linear_forward", rows * out, repeat_row, rows, out, bias, y);
        rounded_copies_outlive(before, y, rows * out);
    }
    multiply(out, rows, in, {weight, out, in, CUBLAS_OP_T}, {x, rows, in, CUBLAS_OP_N},
             bias != NULL, y);
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, const real *dy,
                                  const real *weight, real *dx, bool accumulate)
{
    multiply(in, rows, out, {weight, out, in, CUBLAS_OP_N}, {dy, rows, out, CUBLAS_OP_N},
             accumulate, dx);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy,
                                   const real *x, real *dweight, bool accumulate)
{
    multiply(in, out, rows, {x, rows, in, CUBLAS_OP_N}, {dy, rows, out, CUBLAS_OP_T}, accumulate,
             dweight);
}

void kernel_linear_backward_bias(int64_t rows, int64_t out, const real *dy, real *dbias)
{
    const uint64_t before = device_changes();
    add_column_sums(rows, out, dy, dbias);
    rounded_copies_outlive(before, dbias, out);
}
