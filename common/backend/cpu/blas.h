/** @file
 * What is peculiar to OpenBLAS, as weak symbols: with another CBLAS these are NULL.
 */
#ifndef BALISE_BACKEND_CPU_BLAS_H
#define BALISE_BACKEND_CPU_BLAS_H

extern char *openblas_get_corename(void) __attribute__((weak));
extern char *openblas_get_config(void) __attribute__((weak));
extern void openblas_set_num_threads(int threads) __attribute__((weak));

#endif
