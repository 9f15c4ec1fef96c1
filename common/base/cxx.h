/** @file
 * For headers of C that kernels in CUDA C read too, which is C++: BEGIN_C and END_C stand around their declarations.
 */
#pragma once

#ifdef __cplusplus
/** Begins declarations of C: extern "C" in C++, nothing in C. */
#define BEGIN_C extern "C" {
/** Ends what BEGIN_C has begun. */
#define END_C }
/** C's word, by its name in C++. */
#define _Noreturn [[noreturn]]
#else
/** Nothing, in C. */
#define BEGIN_C
/** Nothing, in C. */
#define END_C
#endif

/** Before a function that runs on a GPU as well as on the host. */
#ifdef __CUDACC__
#define HOST_AND_DEVICE __host__ __device__
#else
#define HOST_AND_DEVICE
#endif
