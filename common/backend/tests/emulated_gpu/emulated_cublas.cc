/* See cublas_v2.h. */
#include "cublas_v2.h"

#include <cblas.h>
#include <vector>

struct EmulatedBlas {
    cudaStream_t stream;
};

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    *handle = new EmulatedBlas();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUPPORTED";
}

static float number_of_fp16(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                       : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                       : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    return half & 0x8000 ? -size : size;
}

/* The matrix in single precision: itself, or what its 16-bit numbers stand for. */
static const float *single(const void *matrix, cudaDataType_t type, int stride, int columns,
                           std::vector<float> *room)
{
    if (type == CUDA_R_32F)
        return static_cast<const float *>(matrix);
    const uint16_t *half = static_cast<const uint16_t *>(matrix);
    room->resize(static_cast<size_t>(stride) * static_cast<size_t>(columns));
    for (size_t i = 0; i < room->size(); i++) {
        const uint32_t bits = static_cast<uint32_t>(half[i]) << 16;
        if (type == CUDA_R_16BF)
            std::memcpy(&(*room)[i], &bits, sizeof bits);
        else
            (*room)[i] = number_of_fp16(half[i]);
    }
    return room->data();
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_flag, cublasOperation_t b_flag,
                            int rows, int columns, int inner, const void *alpha, const void *a,
                            cudaDataType_t a_type, int a_stride, const void *b, cudaDataType_t b_type,
                            int b_stride, const void *beta, void *c, cudaDataType_t c_type, int c_stride,
                            cublasComputeType_t, cublasGemmAlgo_t)
{
    if (c_type != CUDA_R_32F || a_type != b_type)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (const void *matrix : {a, b, static_cast<const void *>(c)})
        emulated_check_pointer(matrix);
    const float scale = *static_cast<const float *>(alpha), kept = *static_cast<const float *>(beta);
    emulated_later(handle->stream, [=] {
        std::vector<float> a_room, b_room;
        cblas_sgemm(CblasColMajor, a_flag == CUBLAS_OP_T ? CblasTrans : CblasNoTrans,
                    b_flag == CUBLAS_OP_T ? CblasTrans : CblasNoTrans, rows, columns, inner, scale,
                    single(a, a_type, a_stride, a_flag == CUBLAS_OP_T ? rows : inner, &a_room), a_stride,
                    single(b, b_type, b_stride, b_flag == CUBLAS_OP_T ? inner : columns, &b_room), b_stride,
                    kept, static_cast<float *>(c), c_stride);
    });
    return CUBLAS_STATUS_SUCCESS;
}
