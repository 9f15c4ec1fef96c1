/** @file
 * What is peculiar to OpenBLAS, as weak symbols: with another CBLAS these are NULL.
 */
#pragma once

/** The machine that OpenBLAS takes this one for: "SkylakeX". Belongs to OpenBLAS. */
extern char *openblas_get_corename(void) __attribute__((weak));
/** Its version and how it was built. Belongs to OpenBLAS. */
extern char *openblas_get_config(void) __attribute__((weak));
/** How many threads products use from now on. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));
