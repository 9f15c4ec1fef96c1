/** @file
 * For C headers that CUDA C (that is, C++) includes too: BEGIN_C and END_C enclose their
 * declarations.
 */
#pragma once

#ifdef __cplusplus
/** extern "C" in C++, nothing in C. */
#define BEGIN_C extern "C" {
/** Closes BEGIN_C. */
#define END_C }
/** C's keyword, defined as the attribute of C++. */
#define _Noreturn [[noreturn]]
#else
/** Nothing, in C. */
#define BEGIN_C
/** Nothing, in C. */
#define END_C
#endif

/** Marks a function that runs on a GPU as well as on the host. */
#ifdef __CUDACC__
#define HOST_AND_DEVICE __host__ __device__
#else
#define HOST_AND_DEVICE
#endif
