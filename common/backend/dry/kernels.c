/* A dry run's kernels, which count and do not compute, and its memory, which takes no room. */
#include <stdlib.h>
#include <sys/mman.h>

#include "backend/backend.h"
#include "backend/cpu/tiles.h"
#include "backend/dry/dry.h"

static DryWork counted;
static int64_t most_rows_in_use = INT64_MAX;
static int number_of_threads = 1;
static Precision precision;
static bool as_on_gpu;

DryWork dry_work(void)
{
    return counted;
}

void dry_imitate_gpu(bool gpu)
{
    as_on_gpu = gpu;
}

void dry_set_most_rows_in_use(int64_t most)
{
    most_rows_in_use = most;
}

void backend_start(char **argv)
{
}

bool backend_check(Problem *problem)
{
    return true;
}

const char *backend_description(void)
{
    return "";
}

double backend_peak(void)
{
    return 0;
}

void backend_set_threads(int threads)
{
    number_of_threads = threads;
}

bool backend_set_products(Precision of_products, int64_t width, Problem *problem)
{
    precision = of_products;
    return as_on_gpu || precision == FP32 || precision == BF16 ||
           problem_set(problem, NULL, "on a CPU, use AMP=bf16; on a GPU, add BACKEND=cuda",
                       "AMP=%s needs a GPU", precision_name(precision));
}

Precision backend_products(void)
{
    return precision;
}

bool backend_looks_for_zeros(void)
{
    return !as_on_gpu;
}

bool backend_only_counts(void)
{
    return true;
}

/* ---- memory: a tensor that only kernels access is a piece of a region without pages behind it ---- */

static struct {
    char *region;
    int64_t size, used, pieces;
} reserved;

static bool reserve(void)
{
    for (reserved.size = INT64_C(1) << 46; reserved.size >= 1 << 20; reserved.size /= 2) {
        void *region = mmap(NULL, (size_t)reserved.size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (region != MAP_FAILED)
            return (reserved.region = region);
    }
    return false;
}

void *backend_memory(int64_t bytes, MemoryKind kind)
{
    if (kind == HOST_MEMORY)
        return calloc((size_t)bytes, 1);
    if ((!reserved.region && !reserve()) || reserved.used + bytes > reserved.size)
        return NULL;
    char *memory = reserved.region + reserved.used;
    reserved.used += bytes;
    reserved.pieces++;
    return memory;
}

/* The region is used again when all of its pieces are free. */
void backend_memory_free(void *memory, MemoryKind kind)
{
    if (kind == HOST_MEMORY)
        free(memory);
    else if (memory && --reserved.pieces == 0)
        reserved.used = 0;
}

void backend_set_bytes(void *memory, int byte, int64_t bytes)
{
}

/* ---- kernels ---- */

static int64_t of_attention(const AttentionShape *shape)
{
    return shape->batch * shape->heads * shape->positions * attention_keys(shape) *
           shape->head_size;
}

/* The bytes of one of these numbers; 0 if there are none. */
static int64_t width_of(Numbers x)
{
    return x.halves ? (int64_t)sizeof *x.halves : x.reals ? (int64_t)sizeof *x.reals : 0;
}

/* All kernels that return void. kernels.awk writes them from their declarations in backend.h and
 * attention.h. */
#include "dry_kernels.h"

int64_t kernel_attention_work(const AttentionShape *shape)
{
    return as_on_gpu
               ? shape->batch * shape->heads * shape->positions
               : number_of_threads * work_of_thread(shape, kernel_attention_is_in_16_bits(shape));
}

bool kernel_attention_is_in_16_bits(const AttentionShape *shape)
{
    return precision_is_16_bits(precision) &&
           (as_on_gpu ? shape->head_size <= LARGEST_HEAD_16 : is_worth_rounding(shape));
}

int64_t kernel_rows_in_use(int64_t rows, int64_t columns, Numbers x, int32_t *index)
{
    const int64_t used = rows < most_rows_in_use ? rows : most_rows_in_use;
    for (int64_t i = 0; i < used; i++)
        index[i] = (int32_t)i;
    return used;
}

double kernel_vector_square_sum(int64_t count, const real *x)
{
    counted.bytes += count * (int64_t)sizeof *x;
    return 0;
}
