/** @file
 * NCCL for the emulated GPU, over MPI. A result appears only when its stream reaches the call.
 * EMULATED_NCCL_VERSION=21700 sets the version that the library reports.
 */
#pragma once

#include "cuda_runtime.h"

#define NCCL_VERSION(major, minor, patch) (10000 * (major) + 100 * (minor) + (patch))
#define NCCL_VERSION_CODE                 NCCL_VERSION(2, 28, 9)

enum ncclResult_t {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInProgress = 7
};
enum ncclDataType_t { ncclFloat = 7 };
enum ncclRedOp_t { ncclSum, ncclMax = 2 };
typedef struct EmulatedComm *ncclComm_t;
struct ncclUniqueId {
    char internal[128];
};
struct ncclConfig_t {
    int blocking;
};

const char *ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *part,
                           ncclConfig_t *config);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result);
ncclResult_t ncclAllReduce(const void *x, void *y, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *x, void *y, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *x, void *y, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *x, void *y, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void *x, size_t count, ncclDataType_t type, int to, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *y, size_t count, ncclDataType_t type, int from, ncclComm_t comm,
                      cudaStream_t stream);
