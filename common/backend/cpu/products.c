/* Selects the library that multiplies, and opens oneDNN. */
#include "backend/cpu/products.h"

#include <cblas.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>

#include "backend/backend.h"

/** From LEAST multiply-adds on, oneDNN in single precision multiplies faster than OpenBLAS, except
 *  for the gradient of a weight with many rows and few columns (a layer from 256 to 1,024, for
 *  example). Loading oneDNN takes 26 ms, so in single precision only models at least LARGE wide use
 *  it, and only with AVX-512, because only that was measured. On one machine, the choice depends on
 *  sizes alone, so it is the same in every run. */
enum { LARGE = 256, LEAST = 1 << 17, MANY_ROWS = 1024, FEW_COLUMNS = 512 };

/** Process-wide, like the number of threads: kernels do not take these as arguments. */
static const OneDnn *in_bf16, *in_single;
static Bf16Support support;

/* oneDNN's kernels keep numbers below the stack pointer, where a signal handler would overwrite
 * them. Handlers with SA_ONSTACK run on this stack instead, unless there is another one. A
 * process's signals reach its main thread, which calls this. */
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
    in_bf16 = in_single = NULL;
    if (precision == FP16 || precision == TF32)
        return problem_set(problem, NULL, "on a CPU, use AMP=bf16; on a GPU, add BACKEND=cuda",
                           "AMP=%s needs a GPU", precision_name(precision));
    if (precision == FP32 && width < LARGE)
        return true; /* loading oneDNN takes 26 ms */
    const OneDnn *library = open_library();
    if (precision == FP32) {
        in_single = library && library->has_avx512() ? library : NULL;
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

Precision backend_products(void)
{
    return in_bf16 ? BF16 : FP32;
}

const OneDnn *products_in_bf16(void)
{
    return in_bf16;
}

static bool is_faster_with_onednn(const Product *p)
{
    return p->rows * p->columns * p->inner >= LEAST &&
           !(p->a_transposed && p->rows >= MANY_ROWS && p->columns < FEW_COLUMNS);
}

void multiply_single(const Product *p, real factor, const real *a, int64_t a_step, const real *b,
                     int64_t b_step, real *c, int64_t c_step)
{
    if (in_single && is_faster_with_onednn(p))
        in_single->multiply_single(p, factor, a, a_step, b, b_step, c, c_step);
    else
        cblas_sgemm(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
                    p->b_transposed ? CblasTrans : CblasNoTrans, (int)p->rows, (int)p->columns,
                    (int)p->inner, factor, a, (int)a_step, b, (int)b_step, p->accumulate ? 1 : 0, c,
                    (int)c_step);
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
    else if (in_single)
        snprintf(text, sizeof text, ", oneDNN %s for large products", in_single->version);
    return text;
}
