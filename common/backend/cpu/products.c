/* Selects the library that multiplies, and opens oneDNN. */
#include "backend/cpu/products.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>

#include "backend/backend.h"

/** From this width on, oneDNN in single precision is 2 to 6 % faster than OpenBLAS, forward and
 *  backward. Below it, at least one product of a layer is slower: the weight's gradient of a layer
 *  from 256 to 1,024 by 18 %. oneDNN is used only with AVX-512, because only that was measured. The
 *  choice depends on the size alone, so it is the same in every run. */
enum { LARGE = 384 };

/** Process-wide, like the number of threads: kernels do not take it as an argument. */
static const OneDnn *in_bf16, *of_large;
static Bf16Support support;

/* oneDNN's kernels keep numbers below the stack pointer, where a signal handler would overwrite
 * them. Handlers with SA_ONSTACK run on this stack instead, unless there is another one. Signals of
 * a process reach its main thread, which calls this. */
static void separate_handlers(void)
{
    static char stack[64 << 10];
    stack_t present;
    if (sigaltstack(NULL, &present) == 0 && present.ss_flags & SS_DISABLE)
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
}

static const OneDnn *open_library(void)
{
    separate_handlers();
    void *library = dlopen(ONEDNN_FILE, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, ONEDNN_SYMBOL) : NULL;
}

bool backend_set_products(Precision precision, int64_t width, Problem *problem)
{
    in_bf16 = of_large = NULL;
    if (precision == FP16 || precision == TF32)
        return problem_set(problem, NULL, "on a CPU, use AMP=bf16; on a GPU, add BACKEND=cuda",
                           "AMP=%s needs a GPU", precision_name(precision));
    if (precision == FP32 && width < LARGE)
        return true; /* loading oneDNN takes 26 ms */
    const OneDnn *library = open_library();
    if (precision == FP32) {
        of_large = library && library->has_avx512() ? library : NULL;
        return true;
    }
    if (!library)
        return problem_set(
            problem, NULL,
            "make setup installs it (libdnnl-dev), then make train again; or AMP=off",
            "AMP=bf16 needs oneDNN, which this machine does not have (%.300s)", dlerror());
    support = library->start();
    if (support == BF16_NONE)
        return problem_set(problem, NULL, "train with AMP=off, or on another machine",
                           "AMP=bf16: oneDNN %s cannot multiply in bf16 on this processor",
                           library->version);
    in_bf16 = library;
    return true;
}

const OneDnn *products_in_bf16(void)
{
    return in_bf16;
}

SingleMultiply *products_of_large(int64_t rows, int64_t columns, int64_t inner)
{
    return of_large && rows >= LARGE && columns >= LARGE && inner >= LARGE
               ? of_large->multiply_single
               : NULL;
}

bool products_check(Problem *problem)
{
    return !in_bf16 || support == BF16_FAST ||
           problem_set(
               problem, NULL, "AMP=off is faster here",
               "AMP=bf16 on a processor without instructions for it (avx512_bf16 or amx_bf16): "
               "oneDNN emulates them slowly");
}

const char *products_description(void)
{
    static char text[64];
    text[0] = '\0';
    if (in_bf16)
        snprintf(text, sizeof text, ", AMP=bf16 by oneDNN %s", in_bf16->version);
    else if (of_large)
        snprintf(text, sizeof text, ", oneDNN %s for large products", of_large->version);
    return text;
}
