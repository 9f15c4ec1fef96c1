#include <climits>

#include <cublas_v2.h>

#include "backend/cuda/column_sums.cuh"
#include "backend/cuda/device.cuh"
#include "base/run.h"

/* cuBLAS stores by columns: its matrices are the transposes of ours, and y^T = W x^T. */

static Precision precision = FP32;
static struct {
    const real *begin, *end;
    uint16_t *rounded;
} weights;

static void check(cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        misuse("it may lack memory: a smaller BATCH_SIZE or SEQ needs less",
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

/* ---- 16 bits --------------------------------------------------------------------------------------------- */

__device__ static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The 16 higher bits, to the nearest, ties to even; a NaN stays one. */
__device__ static uint16_t bf16_of(float x)
{
    const uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Likewise of 11 significant bits; from 65520 on infinity. Below 2^-14 numbers are multiples of 2^-24, which is what adding 1/2
 * rounds to. */
__device__ static uint16_t fp16_of(float x)
{
    const uint32_t sign = bits_of(x) >> 16 & 0x8000, size = bits_of(x) & 0x7fffffff;
    uint32_t half;
    if (size > 0x7f800000)
        half = 0x7e00;
    else if (size >= bits_of(65520))
        half = 0x7c00;
    else if (size < bits_of(0x1p-14f))
        half = bits_of(fabsf(x) + 0.5f) - bits_of(0.5f);
    else
        half = (size + 0x0fff + (size >> 13 & 1) - ((127 - 15) << 23)) >> 13;
    return (uint16_t)(sign | half);
}

__global__ static void round_to_16(int64_t count, bool fp16, const float *x, uint16_t *y)
{
    FOR_EACH(i, count) y[i] = fp16 ? fp16_of(x[i]) : bf16_of(x[i]);
}

bool backend_set_products(Precision wanted, int64_t width, Problem *problem)
{
    (void)width;
    if (wanted == BF16 && device_generation() < 8)
        return problem_set(problem, NULL, "AMP=fp16 runs here",
                           "AMP=bf16 needs a GPU of compute capability 8.0 or later");
    precision = wanted;
    return true;
}

void backend_set_weights(const real *first, int64_t count, uint16_t *room)
{
    weights = {first, first + count, room};
    launch_for("round to 16 bits", count, round_to_16, count, precision == FP16, first, room);
}

/* Matrix x [count] in 16 bits: a weight that is rounded already, or x rounded into `room`. */
static const uint16_t *rounded(const real *x, int64_t count, uint16_t *room)
{
    if (weights.begin && x >= weights.begin && x + count <= weights.end)
        return weights.rounded + (x - weights.begin);
    launch_for("round to 16 bits", count, round_to_16, count, precision == FP16, x, room);
    return room;
}

/* ---- products -------------------------------------------------------------------------------------------- */

typedef struct Matrix {
    const real *numbers;
    int64_t rows, columns; /* as it is stored, by rows */
    cublasOperation_t flag;
} Matrix;

static int checked(int64_t size)
{
    if (size > INT_MAX)
        misuse("take a smaller BATCH_SIZE", "a matrix of %lld rows or columns is more than cuBLAS counts",
               (long long)size);
    return (int)size;
}

/* c [columns,rows] by rows (so [rows,columns] by columns) = a · b, added to c if `accumulate`. */
static void multiply(int64_t rows, int64_t columns, int64_t inner, Matrix a, Matrix b, bool accumulate,
                     real *c)
{
    const float one = 1, kept = accumulate ? 1 : 0;
    const void *left = a.numbers, *right = b.numbers;
    cudaDataType_t type = CUDA_R_32F;
    if (rows * columns == 0)
        return;
    if (precision != FP32 && rows * columns * inner >= BF16_LEAST) {
        const int64_t a_count = a.rows * a.columns, b_count = b.rows * b.columns;
        const int64_t apart = (a_count + 127) / 128 * 128; /* tensor cores want them aligned */
        uint16_t *room = (uint16_t *)device_work((apart + b_count) * (int64_t)sizeof *room);
        left = rounded(a.numbers, a_count, room);
        right = rounded(b.numbers, b_count, room + apart);
        type = precision == FP16 ? CUDA_R_16F : CUDA_R_16BF;
    }
    check(cublasGemmEx(library(), a.flag, b.flag, checked(rows), checked(columns), checked(inner), &one, left,
                       type, checked(a.columns), right, type, checked(b.columns), &kept, c, CUDA_R_32F,
                       checked(rows), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    device_started("matrix product");
}

/* A product opens cuBLAS and has its kernels loaded. */
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
    if (bias)
        launch_for("linear_forward", rows * out, repeat_row, rows, out, bias, y);
    multiply(out, rows, in, {weight, out, in, CUBLAS_OP_T}, {x, rows, in, CUBLAS_OP_N}, bias != NULL, y);
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, const real *dy, const real *weight,
                                  real *dx, bool accumulate)
{
    multiply(in, rows, out, {weight, out, in, CUBLAS_OP_N}, {dy, rows, out, CUBLAS_OP_N}, accumulate, dx);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy, const real *x,
                                   real *dweight, bool accumulate)
{
    multiply(in, out, rows, {x, rows, in, CUBLAS_OP_N}, {dy, rows, out, CUBLAS_OP_T}, accumulate, dweight);
}

void kernel_linear_backward_bias(int64_t rows, int64_t out, const real *dy, real *dbias)
{
    add_column_sums(rows, out, dy, dbias);
}
