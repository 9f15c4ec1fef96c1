/* Products by cuBLAS, and the rounding to 16 bits. */
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
    return true;
}

Precision backend_products(void)
{
    return precision;
}

/* ---- matrices in 16 bits -------------------------------------------------------------------------------- */

__global__ static void round_to_16(int64_t count, bool fp16, const float *x, uint16_t *y)
{
    FOR_EACH(i, count) y[i] = fp16 ? to_16_bits<true>(x[i]) : to_16_bits<false>(x[i]);
}

void kernel_round(int64_t count, const real *x, uint16_t *y)
{
    launch_for("round to 16 bits", count, round_to_16, count, precision == FP16, x, y);
}

__global__ static void widen(int64_t count, DeviceNumbers x, float *y)
{
    FOR_EACH(i, count) y[i] = number_at(x, i);
}

void kernel_widen(int64_t count, const uint16_t *x, real *y)
{
    const Numbers from = {NULL, (uint16_t *)x};
    launch_for("widen", count, widen, count, on_device(from), y);
}

__global__ static void add_halves(int64_t rows, int64_t columns, DeviceNumbers x,
                                  DeviceNumbers sums)
{
    FOR_EACH(c, columns)
    {
        float sum = number_at(x, c);
        for (int64_t r = 1; r < rows; r++)
            sum += number_at(x, r * columns + c);
        put_number(sums, c, sum);
    }
}

void kernel_add_halves(int64_t rows, int64_t columns, const uint16_t *x, uint16_t *sums)
{
    const Numbers from = {NULL, (uint16_t *)x}, to = {NULL, sums};
    launch_for("add_halves", columns, add_halves, rows, columns, on_device(from), on_device(to));
}

/* ---- products -------------------------------------------------------------------------------------------- */

typedef struct Matrix {
    Numbers numbers;
    int64_t rows, columns; /* as stored, by rows */
    cublasOperation_t flag;
} Matrix;

static void *start_of(Numbers x)
{
    return x.halves ? (void *)x.halves : x.reals;
}

static cudaDataType_t type_of(Numbers x)
{
    return !x.halves ? CUDA_R_32F : precision == FP16 ? CUDA_R_16F : CUDA_R_16BF;
}

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
                     bool accumulate, Numbers c)
{
    const float one = 1, kept = accumulate ? 1 : 0;
    if (rows * columns == 0)
        return;
    cublasHandle_t handle = library();
    {
        const DeviceCall call;
        check(cublasGemmEx(handle, a.flag, b.flag, checked(rows), checked(columns), checked(inner),
                           &one, start_of(a.numbers), type_of(a.numbers), checked(stride_of(a)),
                           start_of(b.numbers), type_of(b.numbers), checked(stride_of(b)), &kept,
                           start_of(c), type_of(c), checked(rows),
                           precision == TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT));
    }
    device_started("matrix product");
}

/* A product opens cuBLAS and loads its kernels. */
bool backend_open_all(void)
{
    real *x = (real *)backend_memory(3 * (int64_t)sizeof *x, HOST_MEMORY);
    backend_set_bytes(x, 0, 3 * (int64_t)sizeof *x);
    kernel_linear_forward(1, 1, 1, in_full(x), in_full(x + 1), NULL, in_full(x + 2));
    backend_wait();
    backend_memory_free(x, HOST_MEMORY);
    return true;
}

__global__ static void repeat_row(int64_t rows, int64_t columns, const float *row, DeviceNumbers y)
{
    FOR_EACH(i, rows * columns) put_number(y, i, row[i % columns]);
}

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, Numbers x, Numbers weight,
                           const real *bias, Numbers y)
{
    if (bias)
        launch_for("linear_forward", rows * out, repeat_row, rows, out, bias, on_device(y));
    multiply(out, rows, in, {weight, out, in, CUBLAS_OP_T}, {x, rows, in, CUBLAS_OP_N},
             bias != NULL, y);
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers weight,
                                  Numbers dx, bool accumulate)
{
    multiply(in, rows, out, {weight, out, in, CUBLAS_OP_N}, {dy, rows, out, CUBLAS_OP_N},
             accumulate, dx);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers x,
                                   real *dweight, bool accumulate)
{
    multiply(in, out, rows, {x, rows, in, CUBLAS_OP_N}, {dy, rows, out, CUBLAS_OP_T}, accumulate,
             in_full(dweight));
}

void kernel_linear_backward_bias(int64_t rows, int64_t out, Numbers dy, real *dbias)
{
    add_column_sums(rows, out, dy, dbias);
}
