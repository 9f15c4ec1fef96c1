/* See cublas_v2.h. */
#include "cublas_v2.h"
#include "cuda_bf16.h"

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
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS"
                                           : "CUBLAS_STATUS_NOT_SUPPORTED";
}

/* A number as tensor cores read it: without the 13 lower bits. */
static float as_tf32(float x)
{
    const uint32_t bits = emulated_bits(x) & ~0x1fffu;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

/* The matrix in single precision: itself, or its numbers as the product reads them. */
static const float *single(const void *matrix, cudaDataType_t type, bool tf32, int stride,
                           int columns, std::vector<float> *room)
{
    const float *whole = static_cast<const float *>(matrix);
    if (type == CUDA_R_32F && !tf32)
        return whole;
    const uint16_t *half = static_cast<const uint16_t *>(matrix);
    room->resize(static_cast<size_t>(stride) * static_cast<size_t>(columns));
    for (size_t i = 0; i < room->size(); i++)
        (*room)[i] = tf32 ? as_tf32(whole[i]) : emulated_number(type == CUDA_R_16F, half[i]);
    return room->data();
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_flag,
                            cublasOperation_t b_flag, int rows, int columns, int inner,
                            const void *alpha, const void *a, cudaDataType_t a_type, int a_stride,
                            const void *b, cudaDataType_t b_type, int b_stride, const void *beta,
                            void *c, cudaDataType_t c_type, int c_stride,
                            cublasComputeType_t compute, cublasGemmAlgo_t)
{
    if ((c_type != CUDA_R_32F && c_type != a_type) || a_type != b_type ||
        (compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a_type != CUDA_R_32F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (const void *matrix : {a, b, static_cast<const void *>(c)})
        emulated_check_pointer(matrix);
    const float scale = *static_cast<const float *>(alpha),
                kept = *static_cast<const float *>(beta);
    const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    emulated_later(handle->stream, [=] {
        std::vector<float> a_room, b_room, c_room;
        const float *in_full = single(c, c_type, false, c_stride, columns, &c_room);
        cblas_sgemm(
            CblasColMajor, a_flag == CUBLAS_OP_T ? CblasTrans : CblasNoTrans,
            b_flag == CUBLAS_OP_T ? CblasTrans : CblasNoTrans, rows, columns, inner, scale,
            single(a, a_type, tf32, a_stride, a_flag == CUBLAS_OP_T ? rows : inner, &a_room),
            a_stride,
            single(b, b_type, tf32, b_stride, b_flag == CUBLAS_OP_T ? inner : columns, &b_room),
            b_stride, kept, const_cast<float *>(in_full), c_stride);
        uint16_t *const halves = static_cast<uint16_t *>(c);
        for (size_t i = 0; i < c_room.size(); i++)
            halves[i] = c_type == CUDA_R_16F ? __half_as_ushort(__float2half_rn(c_room[i]))
                                             : __bfloat16_as_ushort(__float2bfloat16_rn(c_room[i]));
    });
    return CUBLAS_STATUS_SUCCESS;
}
