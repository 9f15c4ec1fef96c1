/* The library for products: its threads, its description, and a check that it knows this
 * machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/products.h"

/* OpenBLAS multiplies with one thread (kernel_linear.c says why). Its setter comes first, because
 * in an OpenBLAS built with OpenMP, it also sets the number of the kit's own threads. */
void backend_set_threads(int threads)
{
    if (openblas_set_num_threads)
        openblas_set_num_threads(1);
    omp_set_num_threads(threads);
}

/** One thread unless more are requested: ranks are the parallelism. */
__attribute__((constructor)) static void start_with_one_thread(void)
{
    backend_set_threads(1);
}

const char *backend_description(void)
{
    static char text[160]; /* each call writes the current description */
    char version[32] = "CBLAS";
    if (openblas_get_config)
        sscanf(openblas_get_config(), "OpenBLAS %15s",
               version + snprintf(version, sizeof version, "OpenBLAS "));
    const int threads = omp_get_max_threads();
    snprintf(text, sizeof text, "cpu (%s%s%s%s, %d thread%s)", version,
             openblas_get_corename ? ", " : "",
             openblas_get_corename ? openblas_get_corename() : "", products_description(), threads,
             threads == 1 ? "" : "s");
    return text;
}

#ifdef __x86_64__
/** The vector width in bits of OpenBLAS's kernels for `core`; 128 if it has no special ones. */
static int vector_bits_of_core(const char *core)
{
    static const char *const wide[] = {"SkylakeX", "Cooperlake", "SapphireRapids",
                                       "Haswell",  "Zen",        "Excavator"};
    for (int i = 0; i < 6; i++)
        if (strcasecmp(core, wide[i]) == 0)
            return i < 3 ? 512 : 256;
    return 128;
}

static int vector_bits_of_machine(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return 512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 256 : 128;
}

void backend_start(char **argv)
{
    if (!openblas_get_corename || getenv("OPENBLAS_CORETYPE"))
        return;
    const int bits = vector_bits_of_machine();
    if (bits == 128 || vector_bits_of_core(openblas_get_corename()) >= 256)
        return;
    /* The library reads this when it is loaded. */
    setenv("OPENBLAS_CORETYPE", bits == 512 ? "SkylakeX" : "Haswell", 1);
    execv("/proc/self/exe", argv);
    unsetenv("OPENBLAS_CORETYPE"); /* backend_check will report it */
}

bool backend_check(Problem *problem)
{
    if (!products_check(problem))
        return false;
    if (!openblas_get_corename)
        return true;
    const char *core = openblas_get_corename(), *forced = getenv("OPENBLAS_CORETYPE");
    const int core_bits = vector_bits_of_core(core), machine_bits = vector_bits_of_machine();
    if (forced && core_bits < machine_bits)
        return problem_set(
            problem, "environment variable OPENBLAS_CORETYPE",
            "unset OPENBLAS_CORETYPE, then start again",
            "OPENBLAS_CORETYPE=%s makes OpenBLAS use its %s kernels with %d-bit vectors, but this "
            "machine has %d-bit ones: matrix products may take twice as long",
            forced, core, core_bits, machine_bits);
    if (core_bits < 256 && core_bits < machine_bits)
        return problem_set(
            problem, NULL,
            "install a newer OpenBLAS, or set OPENBLAS_CORETYPE to a similar machine it knows",
            "OpenBLAS does not know this machine and uses its %s kernels with %d-bit vectors, but "
            "the machine has %d-bit ones",
            core, core_bits, machine_bits);
    return true;
}
#else
void backend_start(char **argv)
{
}

bool backend_check(Problem *problem)
{
    /* On this architecture, OpenBLAS selects its kernels by the machine's feature flags. */
    return products_check(problem);
}
#endif
