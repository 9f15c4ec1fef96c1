/** @file
 * The kernels: every loop over numbers that an operation needs. The linker selects one of several
 * implementations of this header, among them `cpu` (single precision, CBLAS, vectorised) and
 * `reference` (double precision, plain loops: the definition against which all others are tested).
 *
 * Unless a parameter says otherwise: matrices are row-major and contiguous; `rows` counts the rows
 * of [.., columns]; results do not overlap arguments, but an element-wise kernel may overwrite an
 * argument of the same shape; no allocation outlives the call; the caller checks sizes. Kernels
 * depend on neither placements nor ranks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backend/attention.h"
#include "base/cxx.h"
#include "base/ids.h"
#include "base/philox.h"
#include "base/problem.h"
#include "base/real.h"

BEGIN_C

/** Call this first in main. If the BLAS does not know this machine and fell back to kernels with
 *  narrow vectors, restarts the program with OPENBLAS_CORETYPE set to the nearest machine that it
 *  knows. Returns if that is unnecessary or OPENBLAS_CORETYPE is set already. */
void backend_start(char **argv);

/** Can kernels run here? Call this before any other function of this file except backend_start();
 *  otherwise a missing device ends the program.
 *  @return true if so; false with `problem` if the GPU or the driver is missing, too old, ... */
bool backend_ready(Problem *problem);

/** The device's type, which must be the same on all ranks of a run: "NVIDIA H200, compute
 *  capability 9.0". "" if ranks may differ. */
const char *backend_device(void);

/** Checks once, before the first kernel, whether the machine and the environment let the kernels
 *  run at full speed.
 *  @return true if so; false with `problem` (a warning, for example that OPENBLAS_CORETYPE forces
 *  slow kernels) */
bool backend_check(Problem *problem);

/** Describes the kernels for the configuration that a run prints: "cpu (OpenBLAS 0.3.21, SkylakeX,
 *  2 threads)". Valid until the next call. */
const char *backend_description(void);

/** Measures how many floating-point operations per second one core can do in single precision;
 *  takes about 2 ms. Returns 0 if that is unknown, as on a GPU: `make bench` then needs the peak
 *  from its data sheet. */
double backend_peak(void);

/** Opens every file and device that kernels will need, for a process that will lose the right to
 *  open any.
 *  @return whether kernels will still open devices, as a GPU's driver does for each allocation */
bool backend_open_all(void);

/** Sets the number of threads that the kernels of this process use. */
void backend_set_threads(int threads);

/* ---- memory ------------------------------------------------------------------------------------------- */

/** The two kinds of memory. They are the same if kernels run on the host. */
typedef enum MemoryKind {
    DEVICE_MEMORY, /**< a GPU's: only kernels access it; backend_read() and backend_write() copy */
    HOST_MEMORY /**< kernels and the host access it, the host only while no kernel does (see backend_wait()) */
} MemoryKind;

/** Says where this kind of memory is, for an out-of-memory message: "GPU 0 (NVIDIA H200) with
 *  143771 MB, 12 MB of it free". Valid until the next call. */
const char *backend_memory_place(MemoryKind kind);

/** Allocates uninitialised memory for tensors, 64-byte aligned; returns NULL if there is not
 *  enough. */
void *backend_memory(int64_t bytes, MemoryKind kind);
/** Frees what backend_memory() returned for the same kind. NULL is allowed. */
void backend_memory_free(void *memory, MemoryKind kind);

/** Kernels run in the order of their calls, but perhaps only after the call has returned.
 *  backend_wait() returns when all have ended: the host may then read their results and overwrite
 *  their arguments. */
void backend_wait(void);

/** If `always`, every kernel call waits for its kernel. The kit sets this while a lab holds a
 *  pointer to a tensor's numbers. */
void backend_wait_always(bool always);

/** Returns the host's address of this memory, or NULL if the host cannot access it. */
void *backend_on_host(void *memory);

/** Waits for the kernels called so far, then copies from a tensor's memory to the host's. */
void backend_read(void *host, const void *memory, int64_t bytes);
/** Copies from the host's memory to a tensor's. When it returns, the caller may change `host`. */
void backend_write(void *memory, const void *host, int64_t bytes);

/** Sets each byte, after the kernels called so far. */
void backend_set_bytes(void *memory, int byte, int64_t bytes);

/** Do kernel_rows_in_use() and AdamW.seen find rows of zeros in this backend? Otherwise, callers
 *  need not use them. */
bool backend_looks_for_zeros(void);

/** Is this a dry run? If so, kernels neither read nor write tensors, and memory that only
 *  kernels access takes no room. */
bool backend_only_counts(void);

/** Begins a named range that lasts until backend_range_end(), for profilers: an NVTX range on
 *  NVIDIA GPUs, which Nsight Systems shows above the kernels launched in it; otherwise nothing.
 *  Ranges nest.
 *  @param name copied if necessary */
void backend_range(const char *name);
/** Ends the innermost range. */
void backend_range_end(void);

/* ---- precision of matrix products ------------------------------------------------------------------------ */

/** The precision to which a product's matrices are rounded before they are multiplied (to nearest,
 *  ties to even). Sums, biases and results stay in single precision. BF16 (Kalamkar et al.,
 *  arXiv:1905.12322): 8 significant bits and the exponents of FP32. FP16 (IEEE 754's binary16): 11
 *  significant bits, numbers from 2^-24 to 65504; only on GPUs. TF32 (NVIDIA's GPUs, from Ampere
 *  on): 11 significant bits and the exponents of FP32, as tensor cores read FP32; the product's
 *  kernel decides whether the lower bits are dropped or rounded. */
typedef enum Precision {
    FP32, /**< nothing is rounded */
    BF16, /**< AMP=bf16 */
    FP16, /**< AMP=fp16 */
    TF32, /**< AMP=tf32 */
} Precision;

/** Layers with fewer multiply-adds stay in FP32, because rounding their matrices takes longer than
 *  it saves. Measured for the three products of a layer, on one core with avx512_bf16: 64³
 *  multiply-adds take 8.7 µs in FP32 and 11.2 µs in BF16; 128·64·64 take 15.4 and 16.5 µs; 128³
 *  take 63 and 39 µs. The choice depends on the size alone, so it is the same in every run. FP16
 *  has the same limit. */
enum { BF16_LEAST = 1 << 19 };

/** "off", "bf16", "fp16" or "tf32": the values of AMP. */
static inline const char *precision_name(Precision precision)
{
    static const char *const names[] = {"off", "bf16", "fp16", "tf32"};
    return names[precision];
}

/** Are matrices rounded to 16 bits before the product? */
static inline bool precision_is_16_bits(Precision precision)
{
    return precision == BF16 || precision == FP16;
}

/** Sets the precision of products. TF32 applies to the kernels of y = x W^T. BF16 and FP16 are those
 *  of numbers in 16 bits: the caller rounds matrices where is_in_16_bits() or
 *  kernel_attention_is_in_16_bits() says so. `width` is the model's H, or 0 if unknown: for wide
 *  models, another library may be faster.
 *  @return true; or false with `problem` if this machine has no such products: they then stay in
 *  FP32 */
bool backend_set_products(Precision precision, int64_t width, Problem *problem);

/** The precision that backend_set_products() has set. */
Precision backend_products(void);

/** Does a layer with this many multiply-adds, rows · in · out, multiply in 16 bits, forward and
 *  backward? */
static inline bool is_in_16_bits(int64_t multiply_adds)
{
    return precision_is_16_bits(backend_products()) && multiply_adds >= BF16_LEAST;
}

/** y = x, rounded to the precision of products, BF16 or FP16: y's numbers are the upper halves of
 *  floats, or binary16. NaN stays NaN; numbers that are too large become infinite. */
void kernel_round(int64_t count, const real *x, uint16_t *y);

/** y = x, of numbers that kernel_round() has rounded. */
void kernel_widen(int64_t count, const uint16_t *x, real *y);

/** sums [columns] = the sum of the rows of x [rows,columns], added as reals in the order of the rows,
 *  then rounded; rows >= 1. They may overwrite the first row. */
void kernel_add_halves(int64_t rows, int64_t columns, const uint16_t *x, uint16_t *sums);

/* ---- y = x W^T: both factors have one type, and sums are reals ----------------------------------------- */

/** y [rows,out] = x [rows,in] · weight [out,in]^T (+ bias [out], which may be NULL). Only a product
 *  of numbers in 16 bits can write 16 bits. */
void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, Numbers x, Numbers weight,
                           const real *bias, Numbers y);

/** dx [rows,in] = dy [rows,out] · weight [out,in]; added to dx, of reals, if `accumulate`. */
void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers weight,
                                  Numbers dx, bool accumulate);

/** dweight [out,in] = dy [rows,out]^T · x [rows,in]; added to dweight if `accumulate`. */
void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers x,
                                   real *dweight, bool accumulate);

/** dbias [out] += the column sums of dy [rows,out]. */
void kernel_linear_backward_bias(int64_t rows, int64_t out, Numbers dy, real *dbias);

/* ---- embedding ----------------------------------------------------------------------------------------- */

/** y [count,columns]: row i is table row ids[i], zeros for NO_ID. Both have one type. */
void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, Numbers table,
                           Numbers y);

/** dtable[ids[i]] += dy row i, in the order of i, so the sum is the same in each run. */
void kernel_lookup_backward(int64_t count, int64_t columns, const int32_t *ids, const real *dy,
                            real *dtable);

/** Finds the rows of x [rows,columns] that are not all zeros; writes their indices, in order, to
 *  index [rows].
 *  @return how many; or `rows`, with the contents of index undefined, if so few rows are zeros that
 *  skipping them gains nothing */
int64_t kernel_rows_in_use(int64_t rows, int64_t columns, Numbers x, int32_t *index);

/* ---- layer norm (Ba et al., arXiv:1607.06450) ---------------------------------------------------------- */

/** Normalises each row, with mean and variance over `columns` (not columns - 1); mean, rstd [rows]
 *  are kept for backward. A row whose squares overflow becomes NaN, not zeros:
 *  \f[ y = (x - \mathrm{mean}) \cdot \mathrm{rstd} \cdot \mathrm{weight} + \mathrm{bias}, \qquad
 *      \mathrm{rstd} = \frac{1}{\sqrt{\mathrm{variance} + \epsilon}} \f] */
void kernel_layer_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                               const real *bias, double epsilon, Numbers y, real *mean, real *rstd);

/** Writes dx (or adds to it if `accumulate`); adds to dweight and dbias [columns]. With n = (x -
 *  mean) · rstd and means over a row:
 *  \f[ dx = \mathrm{rstd} \left( g - \overline{g} - n\,\overline{g\,n} \right), \qquad g = dy \cdot \mathrm{weight} \f] */
void kernel_layer_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                                const real *weight, const real *mean, const real *rstd, real *dx,
                                bool accumulate, real *dweight, real *dbias);

/* ---- RMS norm (Zhang and Sennrich, arXiv:1910.07467) --------------------------------------------------- */

/** A layer norm without mean and bias, NaN where that is; rstd [rows] is kept for backward:
 *  \f[ y = x \cdot \mathrm{rstd} \cdot \mathrm{weight}, \qquad
 *      \mathrm{rstd} = \frac{1}{\sqrt{\overline{x^2} + \epsilon}} \f] */
void kernel_rms_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                             double epsilon, Numbers y, real *rstd);

/** Writes dx (or adds to it if `accumulate`); adds to dweight [columns]. With n = x · rstd and means
 *  over a row:
 *  \f[ dx = \mathrm{rstd} \left( g - n\,\overline{g\,n} \right), \qquad g = dy \cdot \mathrm{weight} \f] */
void kernel_rms_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                              const real *weight, const real *rstd, real *dx, bool accumulate,
                              real *dweight);

/* ---- GELU, SwiGLU and dropout: all tensors of a call have one type ------------------------------------- */

/** The exact form (Hendrycks and Gimpel, arXiv:1606.08415):
 *  \f[ y = x\,\Phi(x) = \frac{x}{2} \left( 1 + \mathrm{erf} \frac{x}{\sqrt 2} \right) \f] */
void kernel_gelu_forward(int64_t count, Numbers x, Numbers y);

/** \f[ dx = dy \left( \Phi(x) + x\,\varphi(x) \right), \qquad \varphi(x) = \frac{1}{\sqrt{2\pi}}\, e^{-x^2/2} \f] */
void kernel_gelu_backward(int64_t count, Numbers dy, Numbers x, Numbers dx);

/** GPT-2's approximation of GELU (section 2 of the same paper), with the logistic function σ:
 *  \f[ y = \frac{x}{2} \left( 1 + \tanh u \right) = x\,\sigma(2u), \qquad
 *      u = \sqrt{2/\pi} \left( x + 0.044715\,x^3 \right) \f] */
void kernel_gelu_tanh_forward(int64_t count, Numbers x, Numbers y);

/** \f[ dx = dy \left( \sigma(2u) + x\,\sigma(2u)\,\sigma(-2u)\,2u' \right) \f] */
void kernel_gelu_tanh_backward(int64_t count, Numbers dy, Numbers x, Numbers dx);

/** SwiGLU without its matrix products (Shazeer, arXiv:2002.05202, equation 5), with the logistic
 *  function σ: \f[ y = \mathrm{gate}\,\sigma(\mathrm{gate}) \cdot \mathrm{up} \f] */
void kernel_swiglu_forward(int64_t count, Numbers gate, Numbers up, Numbers y);

/** \f[ \mathrm{dup} = dy\,\mathrm{gate}\,\sigma(\mathrm{gate}), \qquad \mathrm{dgate} =
 *      dy\,\mathrm{up}\,\sigma(\mathrm{gate}) \left( 1 + \mathrm{gate}\,\sigma(-\mathrm{gate}) \right) \f]
 *  dgate or dup may overwrite dy. */
void kernel_swiglu_backward(int64_t count, Numbers dy, Numbers gate, Numbers up, Numbers dgate,
                            Numbers dup);

/** Determines which elements dropout keeps. Row r of the tensor is position position_begin + r % positions
 *  of sample samples[r / positions]; column c of this rank is column column_begin + c of the full
 *  tensor. The element is kept when
 *      philox_uniform(philox(key, lo(sample), hi(sample), position, column/4).word[column%4]) >= probability
 *  (with the global column), so the mask is the same in every layout. Kept elements are divided by
 *  1 - probability. */
typedef struct DropoutMask {
    PhiloxKey key;          /**< from the seed, the name of the layer, the step and the draw */
    double probability;     /**< of dropping an element, in [0, 1) */
    const int64_t *samples; /**< [rows / positions] row numbers in the data set */
    int64_t positions;    /**< on this rank: S or its part of S; 1 for a tensor without positions */
    int64_t column_begin; /**< this rank's first column in the full tensor */
    int64_t position_begin; /**< this rank's first position in the full tensor */
} DropoutMask;

enum { DROPOUT_BITS = 32 }; /**< elements per word of bits */

/** The number of words for the bits of a row. */
HOST_AND_DEVICE static inline int64_t dropout_words(int64_t columns)
{
    return (columns + DROPOUT_BITS - 1) / DROPOUT_BITS;
}

/** The smallest w >> 8 of an element that is kept. Since philox_uniform(w) is (w >> 8) 2^-24,
 *  integers can be compared. */
static inline uint32_t dropout_threshold(double probability)
{
    const double whole = probability * 0x1p24;
    const uint32_t below = (uint32_t)whole;
    return below < whole ? below + 1 : below;
}

/** Draws the mask once; the kernels below read it in each pass. In kept
 *  [rows,dropout_words(columns)], bit c % DROPOUT_BITS of word c / DROPOUT_BITS of a row is 1 if
 *  column c is kept. Bits after the last column are 0. */
void kernel_dropout_draw(int64_t rows, int64_t columns, const DropoutMask *mask, uint32_t *kept);

/** Operations that include dropout, each in one pass. */
typedef enum DropoutOperation {
    DROPOUT,      /**< y = kept · x / (1 - probability); its backward is the same function of dy */
    GELU_DROPOUT, /**< y = dropout(gelu(x)) */
    GELU_DROPOUT_BACKWARD, /**< y = gelu'(x) · kept · dy / (1 - probability) */
} DropoutOperation;

/** Runs `operation`. Only GELU_DROPOUT_BACKWARD reads dy. */
void kernel_dropout(DropoutOperation operation, int64_t rows, int64_t columns, double probability,
                    const uint32_t *kept, Numbers dy, Numbers x, Numbers y);

/* ---- tanh ---------------------------------------------------------------------------------------------- */

/** y = tanh(x). */
void kernel_tanh_forward(int64_t count, const real *x, real *y);

/** dx = dy (1 - y²), from the result y of forward. */
void kernel_tanh_backward(int64_t count, const real *dy, const real *y, real *dx);

/* ---- loss ---------------------------------------------------------------------------------------------- */

/** For each row i, with the natural logarithm; gradients are not divided by the number of rows:
 *  \f[ \mathrm{losses}_i = -\log \frac{e^{z_{i,l}}}{\sum_c e^{z_{i,c}}}, \qquad
 *      \mathrm{dlogits}_i = \mathrm{softmax}(z_i) - \mathrm{onehot}(l) \f]
 *  z are the logits [rows,classes], l the row's label. The caller ensures that labels are in
 *  0..classes-1. */
void kernel_cross_entropy(int64_t rows, int64_t classes, const real *logits, const int32_t *labels,
                          real *losses, real *dlogits);

/* ---- a loss whose rows are split over ranks (Megatron-LM, arXiv:1909.08053, section 3) ------------------ */

/* Each rank has `columns` numbers of each row of the logits x, perhaps none. `most` [rows] is the
 * maximum of the whole row (see kernel_row_max()), so no exponential overflows. */

/** most [rows]: the largest number of each row of x; -infinity if there are no columns. */
void kernel_row_max(int64_t rows, int64_t columns, const real *x, real *most);

/** sums [rows]: the sum of exp(x - most) over each row. The caller ensures that no number exceeds
 *  `most`. */
void kernel_row_sum_exp_forward(int64_t rows, int64_t columns, const real *x, const real *most,
                                real *sums);

/** dx = dsums · exp(x - most), dsums [rows]; added to dx if `accumulate`. */
void kernel_row_sum_exp_backward(int64_t rows, int64_t columns, const real *dsums, const real *x,
                                 const real *most, real *dx, bool accumulate);

/** y [rows]: x[r, ids[r]] - most[r], and 0 for NO_ID. The caller ensures that other ids are in
 *  0..columns-1. */
void kernel_row_pick_forward(int64_t rows, int64_t columns, const real *x, const real *most,
                             const int32_t *ids, real *y);

/** dx[r, ids[r]] += dy[r]; nothing for NO_ID. */
void kernel_row_pick_backward(int64_t rows, int64_t columns, const real *dy, const int32_t *ids,
                              real *dx);

/** y = the natural logarithm of x. */
void kernel_logarithm_forward(int64_t count, const real *x, real *y);
/** dx = dy / x. */
void kernel_logarithm_backward(int64_t count, const real *dy, const real *x, real *dx);
void kernel_vector_subtract(int64_t count, const real *x, const real *y, real *z); /**< z = x - y */

/* ---- element-wise and copies --------------------------------------------------------------------------- */

/** y [count] = value. */
void kernel_vector_fill(int64_t count, double value, real *y);
/** y [count] = x [count]. */
void kernel_vector_copy(int64_t count, const real *x, real *y);
void kernel_vector_add(int64_t count, const real *x, Numbers y, real *z); /**< z = x + y */
void kernel_vector_accumulate(int64_t count, const real *x, real *y);     /**< y += x    */
void kernel_vector_scale(int64_t count, double factor, real *x);          /**< x *= factor */

/** Returns the sum of squares of x, summed in double precision. */
double kernel_vector_square_sum(int64_t count, const real *x);

/** Copies a block of `rows` rows of `columns` numbers; the strides are the distances between
 *  consecutive rows, in numbers. */
void kernel_copy_rows(int64_t rows, int64_t columns, const real *x, int64_t x_stride, real *y,
                      int64_t y_stride);

/* ---- optimisers ---------------------------------------------------------------------------------------- */

/** PyTorch's SGD: \f$ w \leftarrow w - \mathrm{rate} \cdot (g + \mathrm{weight\_decay} \cdot w) \f$ */
void kernel_sgd_step(int64_t count, real *w, const real *g, double rate, double weight_decay);

/** The settings of an AdamW step, in PyTorch's names. */
typedef struct AdamW {
    double rate, beta1, beta2, epsilon, weight_decay; /**< see kernel_adamw_step() */
    int64_t step;                                     /**< 1 for the first step */
    /** A byte for each ADAMW_BLOCK numbers: 0 as long as none of them has had a nonzero gradient.
     *  Their m and v are then zero, and the step need not read them; this is the case for most rows
     *  of an embedding table. The kernel sets it. NULL: every number may have had a nonzero
     *  gradient. */
    uint8_t *seen;
} AdamW;
enum { ADAMW_BLOCK = 128 }; /**< numbers that share a byte of AdamW.seen */

/** PyTorch's AdamW (Loshchilov and Hutter, arXiv:1711.05101); m and v are the decaying means of g
 *  and g²:
 *  \f[ m \leftarrow \beta_1 m + (1 - \beta_1)\,g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\,g^2 \f]
 *  \f[ w \leftarrow (1 - \mathrm{rate} \cdot \mathrm{weight\_decay})\,w - \mathrm{rate} \cdot
 *      \frac{m / (1 - \beta_1^{\mathrm{step}})}{\sqrt{v / (1 - \beta_2^{\mathrm{step}})} + \epsilon} \f] */
void kernel_adamw_step(int64_t count, real *w, const real *g, real *m, real *v, const AdamW *adamw);

END_C
