/** @file
 * cuBLAS for the emulated GPU: the products that common/backend/cuda needs, on the host's BLAS.
 */
#pragma once

#include "cuda_runtime.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };
typedef struct EmulatedBlas *cublasHandle_t;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_flag,
                            cublasOperation_t b_flag, int rows, int columns, int inner,
                            const void *alpha, const void *a, cudaDataType_t a_type, int a_stride,
                            const void *b, cudaDataType_t b_type, int b_stride, const void *beta,
                            void *c, cudaDataType_t c_type, int c_stride,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
