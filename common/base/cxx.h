/** @file
 * For headers of C that kernels in CUDA C read too, which is C++: BEGIN_C and END_C stand around their declarations.
 */
#ifndef BALISE_BASE_CXX_H
#define BALISE_BASE_CXX_H

#ifdef __cplusplus
#define BEGIN_C extern "C" {
#define END_C   }
#define _Noreturn [[noreturn]]
#else
#define BEGIN_C
#define END_C
#endif

/** Before a function that runs on a GPU as well as on the host. */
#ifdef __CUDACC__
#define HOST_AND_DEVICE __host__ __device__
#else
#define HOST_AND_DEVICE
#endif

#endif
