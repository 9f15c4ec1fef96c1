/* Matrix products by oneDNN, versions 2 and 3. */
#include "backend/onednn/onednn.h"

#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/language.h"

/** A kind of product that oneDNN has prepared, usually for all sizes: preparing takes a hundred
 *  times as long as a small product, and sizes vary from step to step. A product whose sizes are
 *  given only when it runs takes 1 µs longer in oneDNN 2; for large products this does not
 *  matter. */
typedef struct Prepared {
    Product kind; /* its sizes may be DNNL_RUNTIME_DIM_VAL */
    dnnl_primitive_t primitive;
    struct Prepared *next;
} Prepared;

/** With AMX, oneDNN 2.6 multiplies 1.2 to 2.4 times as fast if it knows the sizes in advance,
 *  unless the inner size is larger than INNER_IN_ADVANCE. So the kit prepares products of each
 *  multiple of ROWS_IN_ADVANCE rows; the last rows are a product of their own, of the kind for all
 *  sizes. */
enum { INNER_IN_ADVANCE = 2048, ROWS_IN_ADVANCE = 128 };

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static bool has_amx;
static _Thread_local Prepared *first; /* oneDNN runs a product on the thread that prepared it */

/* Once start() has found bf16, only lack of memory can make this fail. */
static void must(dnnl_status_t status)
{
    if (status == dnnl_success)
        return;
    fprintf(
        stderr,
        _("error: oneDNN failed with status %d\n  HINT: report it with your processor (lscpu)\n"),
        (int)status);
    abort();
}

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t Layout;
#else
typedef dnnl_memory_desc_t *Layout;
#endif

enum { SRC, WEIGHTS, BIAS, DST, MATRICES }; /* oneDNN's names: a, b, bias, c */

/** Describes a matrix [rows,columns], possibly stored as its transpose. `step` is the distance
 *  between stored rows. */
static Layout layout_of(dnnl_data_type_t type, int64_t rows, int64_t columns, bool transposed,
                        int64_t step)
{
    const dnnl_dims_t sizes = {rows, columns},
                      strides = {transposed ? 1 : step, transposed ? step : 1};
#if DNNL_VERSION_MAJOR >= 3
    Layout layout;
    must(dnnl_memory_desc_create_with_strides(&layout, 2, sizes, type, strides));
#else
    Layout layout = malloc(sizeof *layout);
    must(dnnl_memory_desc_init_by_strides(layout, 2, sizes, type, strides));
#endif
    return layout;
}

static void free_layout(Layout layout)
{
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_destroy(layout);
#else
    free(layout);
#endif
}

static dnnl_status_t describe(dnnl_primitive_desc_t *description, const Layout layout[MATRICES],
                              dnnl_primitive_attr_t attributes)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_matmul_primitive_desc_create(description, engine, layout[SRC], layout[WEIGHTS],
                                             layout[BIAS], layout[DST], attributes);
#else
    dnnl_matmul_desc_t product;
    must(dnnl_matmul_desc_init(&product, layout[SRC], layout[WEIGHTS], layout[BIAS], layout[DST]));
    return dnnl_primitive_desc_create(description, &product, attributes, engine, NULL);
#endif
}

static dnnl_primitive_attr_t attributes_of(const Product *product)
{
    dnnl_primitive_attr_t attributes;
    dnnl_post_ops_t after;
    must(dnnl_primitive_attr_create(&attributes));
    must(dnnl_post_ops_create(&after));
    if (product->accumulate)
#if DNNL_VERSION_MAJOR >= 3
        must(dnnl_post_ops_append_sum(after, 1, 0, dnnl_data_type_undef));
#else
        must(dnnl_post_ops_append_sum(after, 1));
#endif
    must(dnnl_primitive_attr_set_post_ops(attributes, after));
    must(dnnl_post_ops_destroy(after));
    return attributes;
}

/** Describes a product's matrices, or its kind if the sizes are DNNL_RUNTIME_DIM_VAL. */
static void describe_matrices(const Product *p, Layout layout[MATRICES])
{
    layout[SRC] = layout_of(dnnl_bf16, p->rows, p->inner, p->a_transposed,
                            p->a_transposed ? p->rows : p->inner);
    layout[WEIGHTS] = layout_of(dnnl_bf16, p->inner, p->columns, p->b_transposed,
                                p->b_transposed ? p->inner : p->columns);
    layout[BIAS] = p->bias ? layout_of(dnnl_f32, 1, p->columns, false, p->columns) : NULL;
    layout[DST] =
        layout_of(p->in_16_bits ? dnnl_bf16 : dnnl_f32, p->rows, p->columns, false, p->columns);
}

static void free_layouts(Layout layout[MATRICES])
{
    for (int i = 0; i < MATRICES; i++)
        if (layout[i])
            free_layout(layout[i]);
}

/** NULL if this processor cannot multiply in bf16. */
static dnnl_primitive_t prepare(const Product *kind)
{
    Layout layout[MATRICES];
    describe_matrices(kind, layout);
    dnnl_primitive_attr_t attributes = attributes_of(kind);
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive = NULL;
    if (describe(&description, layout, attributes) == dnnl_success) {
        must(dnnl_primitive_create(&primitive, description));
        must(dnnl_primitive_desc_destroy(description));
    }
    must(dnnl_primitive_attr_destroy(attributes));
    free_layouts(layout);
    return primitive;
}

static bool is_same_kind(const Product *p, const Product *q)
{
    return p->a_transposed == q->a_transposed && p->b_transposed == q->b_transposed &&
           p->bias == q->bias && p->accumulate == q->accumulate && p->in_16_bits == q->in_16_bits &&
           p->threads == q->threads && p->rows == q->rows && p->columns == q->columns &&
           p->inner == q->inner;
}

/** The number of the product's rows that oneDNN multiplies with sizes known in advance. The
 *  remaining rows come after them. */
static int64_t rows_in_advance(const Product *product)
{
    return has_amx && !product->a_transposed && product->inner <= INNER_IN_ADVANCE
               ? product->rows / ROWS_IN_ADVANCE * ROWS_IN_ADVANCE
               : 0;
}

/** NULL if this processor cannot multiply in bf16. */
static dnnl_primitive_t prepared_for(const Product *product)
{
    Product kind = *product;
    if (kind.rows != rows_in_advance(product))
        kind.rows = kind.columns = kind.inner = DNNL_RUNTIME_DIM_VAL;
    for (const Prepared *p = first; p; p = p->next)
        if (is_same_kind(&p->kind, &kind))
            return p->primitive;
    Prepared *prepared = malloc(sizeof *prepared);
    *prepared = (Prepared){kind, prepare(&kind), first};
    first = prepared;
    return prepared->primitive;
}

static void multiply_rows(const Product *product, const uint16_t *a, const uint16_t *b,
                          const float *bias, void *c)
{
    void *const numbers[MATRICES] = {(void *)a, (void *)b, (void *)bias, c};
    static const int names[MATRICES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                                        DNNL_ARG_DST};
    /* oneDNN uses as many threads as OpenMP would. */
    const int threads = omp_get_max_threads();
    omp_set_num_threads(product->threads);
    dnnl_primitive_t primitive = prepared_for(product);
    Layout layout[MATRICES];
    dnnl_exec_arg_t arguments[MATRICES];
    int count = 0;
    describe_matrices(product, layout);
    for (int i = 0; i < MATRICES; i++)
        if (layout[i]) {
            arguments[count].arg = names[i];
            must(dnnl_memory_create(&arguments[count++].memory, layout[i], engine, numbers[i]));
        }
    must(dnnl_primitive_execute(primitive, stream, count, arguments));
    for (int i = 0; i < count; i++)
        must(dnnl_memory_destroy(arguments[i].memory));
    free_layouts(layout);
    omp_set_num_threads(threads);
}

static void multiply(const Product *product, const uint16_t *a, const uint16_t *b,
                     const float *bias, Numbers c)
{
    const int64_t rows = rows_in_advance(product), done = rows * product->columns;
    Product part = *product;
    part.rows = rows;
    if (rows > 0)
        multiply_rows(&part, a, b, bias, c.halves ? (void *)c.halves : c.reals);
    part.rows = product->rows - rows;
    if (part.rows > 0)
        multiply_rows(&part, a + rows * product->inner, b, bias,
                      c.halves ? (void *)(c.halves + done) : c.reals + done);
}

/* Always false except on x86-64: elsewhere, oneDNN claims to have all instructions. */
static bool has_instructions(int wanted)
{
#ifdef __x86_64__
    return ((int)dnnl_get_effective_cpu_isa() & wanted) == wanted;
#else
    (void)wanted;
    return false;
#endif
}

static Bf16Support start(void)
{
    if (!engine) {
        must(dnnl_engine_create(&engine, dnnl_cpu, 0));
        must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    }
    const int instructions = (int)dnnl_get_effective_cpu_isa(),
              wanted = dnnl_cpu_isa_avx512_core_bf16;
    has_amx = has_instructions(dnnl_cpu_isa_avx512_core_amx);
    if (!prepared_for(&(Product){.rows = 1, .columns = 1, .inner = 1, .threads = 1}))
        return BF16_NONE;
    return (instructions & wanted) == wanted ? BF16_FAST : BF16_SLOW;
}

static bool has_avx512(void)
{
    return has_instructions(dnnl_cpu_isa_avx512_core);
}

static void multiply_single(const Product *product, float factor, const float *a, int64_t a_step,
                            const float *b, int64_t b_step, float *c, int64_t c_step)
{
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    must(dnnl_sgemm(product->a_transposed ? 'T' : 'N', product->b_transposed ? 'T' : 'N',
                    product->rows, product->columns, product->inner, factor, a, a_step, b, b_step,
                    product->accumulate ? 1 : 0, c, c_step));
    omp_set_num_threads(threads);
}

#define TEXT_OF(number)                 #number
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

extern const OneDnn balise_onednn;
const OneDnn balise_onednn = {
    VERSION_OF(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH), start, multiply,
    has_avx512, multiply_single};
