/** @file
 * The kernels: every loop over numbers that an operation needs. One header, several implementations, of which the
 * linker takes one: `cpu` (single precision, CBLAS, vectorised) and `reference` (double precision, plain loops: the
 * definition that all else is tested against).
 *
 * Unless a parameter says otherwise: matrices are row-major and contiguous; `rows` counts the rows of [.., columns];
 * results do not overlap arguments, except that an element-wise kernel may write over an argument of the same shape;
 * nothing is allocated that outlives the call; sizes are checked by the caller. Kernels know no placement and no rank.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cxx.h"
#include "base/ids.h"
#include "base/philox.h"
#include "base/problem.h"
#include "base/real.h"

BEGIN_C

/** To be called first in main. Where the BLAS is older than the machine, does not know it and fell back to kernels with narrow
 *  vectors, starts the program again with OPENBLAS_CORETYPE set to the nearest machine that it knows. Otherwise, and where
 *  OPENBLAS_CORETYPE is set already, returns. */
void backend_start(char **argv);

/** Can kernels run here? To be asked before anything else of this file but backend_start(); elsewhere what is missing ends the program.
 *  @return true if so; false with `problem`: there is no GPU, no driver, one that is too old, .. */
bool backend_ready(Problem *problem);

/** What all ranks of a run must have alike: "NVIDIA H200, compute capability 9.0"; "" where they need have nothing alike. */
const char *backend_device(void);

/** Checks once, before the first kernel, that the machine and the environment let the kernels run at full speed.
 *  @return true if so; false with `problem` (a warning: e.g. OPENBLAS_CORETYPE forces slow kernels) */
bool backend_check(Problem *problem);

/** "cpu (OpenBLAS 0.3.21, SkylakeX, 2 threads)" or the like, for the configuration that a run prints. */
const char *backend_description(void);

/** Opens all that kernels will want of the system: for a process that will soon be refused to open anything.
 *  @return whether it goes on opening devices all the same, as the driver of a GPU does for each piece of memory */
bool backend_open_all(void);

/** How many threads the kernels of this process use from now on. */
void backend_set_threads(int threads);

/* ---- memory ------------------------------------------------------------------------------------------- */

/** Two kinds of memory, which are one where kernels run on the host. */
typedef enum MemoryKind {
    DEVICE_MEMORY, /**< a GPU's: only kernels reach it. Numbers come and go by backend_read() and backend_write() */
    HOST_MEMORY /**< kernels and the host reach it, the host while no kernel works on it (see backend_wait()) */
} MemoryKind;

/** Where memory of this kind lies, for a message that there is no more: "GPU 0 (NVIDIA H200) with 143771 MB, 12 MB of them free". */
const char *backend_memory_place(MemoryKind kind);

/** Memory for tensors, 64-byte aligned, its contents unset; NULL if there is not so much. */
void *backend_memory(int64_t bytes, MemoryKind kind);
/** Gives back what backend_memory() gave, with the same kind. NULL is allowed. */
void backend_memory_free(void *memory, MemoryKind kind);

/** Kernels run in the order in which they were called, but perhaps not before the call returns. This returns when all have
 *  ended: the host may then read what they wrote, and write what they read. */
void backend_wait(void);

/** From now on a kernel has ended when its call returns, or not any more. For whoever holds a pointer to a tensor's numbers. */
void backend_wait_always(bool always);

/** The address at which the host reaches this memory, where it does; otherwise NULL. */
void *backend_on_host(void *memory);

/** Copies from a tensor's memory to the host's, or the other way round, after all kernels that were called before. */
void backend_read(void *host, const void *memory, int64_t bytes);
/** The other way round: from the host's memory to a tensor's. When it returns, `host` may be changed. */
void backend_write(void *memory, const void *host, int64_t bytes);

/** Sets each byte, in the order of the kernels. */
void backend_set_bytes(void *memory, int byte, int64_t bytes);

/** Do the kernels look for rows of zeros, so that it is worth asking (kernel_rows_in_use, AdamW.seen)? */
bool backend_looks_for_zeros(void);

/** Names what is called until backend_range_end(), for whoever looks on: on NVIDIA GPUs a range of NVTX, which Nsight Systems shows above
 *  the kernels that it has started; elsewhere, and without a profiler, nothing. Ranges lie within each other, as brackets do.
 *  @param name is copied where it is needed */
void backend_range(const char *name);
/** Ends the range that began last. */
void backend_range_end(void);

/* ---- precision of matrix products ------------------------------------------------------------------------ */

/** What the matrices of a product are rounded to before they are multiplied, to the nearest, ties to even; sums, biases and
 *  results stay single precision. BF16 (Kalamkar et al., arXiv:1905.12322): 8 significant bits and the exponents of FP32. FP16
 *  (IEEE 754's binary16): 11 significant bits, numbers from 2^-24 to 65504; for GPUs. TF32 (for NVIDIA's, from Ampere on): 11 significant
 *  bits and the exponents of FP32, as the tensor cores read FP32; what is below is left out or rounded, as the product's kernel has it. */
typedef enum Precision {
    FP32, /**< nothing is rounded */
    BF16, /**< AMP=bf16 */
    FP16, /**< AMP=fp16 */
    TF32, /**< AMP=tf32 */
} Precision;

/** Products of fewer multiply-adds stay FP32, in FP16 too. Rounding their matrices takes longer than it saves: the three products of a layer
 *  of 64³ take 8.7 µs in FP32 and 11.2 in BF16, of 128·64·64 15.4 and 16.5, of 128³ 63 and 39 (one core, avx512_bf16). Decided by
 *  size alone, so that two runs decide alike. */
enum { BF16_LEAST = 1 << 19 };

/** "off", "bf16", "fp16" or "tf32", as AMP has it. */
static inline const char *precision_name(Precision precision)
{
    static const char *const names[] = {"off", "bf16", "fp16", "tf32"};
    return names[precision];
}

/** Are matrices rounded before the product, to numbers of half the size? */
static inline bool precision_is_16_bits(Precision precision)
{
    return precision == BF16 || precision == FP16;
}

/** The precision in which the kernels of y = x W^T multiply from now on; and, on a GPU, BF16 and FP16 that of the products in attention,
 *  whose scores, soft-max and sums keep to FP32 like all other kernels.
 *  `width` is the least size of the matrices of most products to come: for large ones another library may be the best; or 0.
 *  @return false with `problem`, and FP32 as before, where this machine has no such products */
bool backend_set_products(Precision precision, int64_t width, Problem *problem);

/** After backend_set_products(). Says that weights [count] have changed, and will not change before the next call: products in BF16 or FP16
 *  round each matrix among them once, into `room` [count], and what is no weight each time. NULL, 0, NULL: there are none any more. */
void backend_set_weights(const real *weights, int64_t count, uint16_t *room);

/* ---- y = x W^T ----------------------------------------------------------------------------------------- */

/** y [rows,out] = x [rows,in] · weight [out,in]^T (+ bias [out], which may be NULL). */
void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y);

/** dx [rows,in] = dy [rows,out] · weight [out,in]; added to dx if `accumulate`. */
void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, const real *dy,
                                  const real *weight, real *dx, bool accumulate);

/** dweight [out,in] = dy [rows,out]^T · x [rows,in]; added to dweight if `accumulate`. */
void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy,
                                   const real *x, real *dweight, bool accumulate);

/** dbias [out] += the column sums of dy [rows,out]. */
void kernel_linear_backward_bias(int64_t rows, int64_t out, const real *dy, real *dbias);

/* ---- embedding ----------------------------------------------------------------------------------------- */

/** y [count,columns]: row i is table row ids[i], zeros for NO_ID. */
void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, const real *table,
                           real *y);

/** dtable[ids[i]] += dy row i, in the order of i (so that the sum is the same in each run). */
void kernel_lookup_backward(int64_t count, int64_t columns, const int32_t *ids, const real *dy,
                            real *dtable);

/** The rows of x [rows,columns] that hold anything but zeros, in order, in index [rows].
 *  @return how many; or `rows`, index not set, where these are nearly all or leaving the others out gains nothing */
int64_t kernel_rows_in_use(int64_t rows, int64_t columns, const real *x, int32_t *index);

/* ---- layer norm (Ba et al., arXiv:1607.06450) ---------------------------------------------------------- */

/** A row at a time, with mean and variance over `columns` (not columns - 1); mean, rstd [rows] are kept for backward:
 *  \f[ y = (x - \mathrm{mean}) \cdot \mathrm{rstd} \cdot \mathrm{weight} + \mathrm{bias}, \qquad
 *      \mathrm{rstd} = \frac{1}{\sqrt{\mathrm{variance} + \epsilon}} \f] */
void kernel_layer_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                               const real *bias, double epsilon, real *y, real *mean, real *rstd);

/** dx is written (added if `accumulate`); dweight and dbias [columns] are added to. With n = (x - mean) · rstd and means over a row:
 *  \f[ dx = \mathrm{rstd} \left( g - \overline{g} - n\,\overline{g\,n} \right), \qquad g = dy \cdot \mathrm{weight} \f] */
void kernel_layer_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                                const real *weight, const real *mean, const real *rstd, real *dx,
                                bool accumulate, real *dweight, real *dbias);

/* ---- GELU and dropout ---------------------------------------------------------------------------------- */

/** The exact form (Hendrycks and Gimpel, arXiv:1606.08415):
 *  \f[ y = x\,\Phi(x) = \frac{x}{2} \left( 1 + \mathrm{erf} \frac{x}{\sqrt 2} \right) \f] */
void kernel_gelu_forward(int64_t count, const real *x, real *y);

/** \f[ dx = dy \left( \Phi(x) + x\,\varphi(x) \right), \qquad \varphi(x) = \frac{1}{\sqrt{2\pi}}\, e^{-x^2/2} \f] */
void kernel_gelu_backward(int64_t count, const real *dy, const real *x, real *dx);

/** Which elements dropout keeps. Row r of the tensor is position r % positions of sample samples[r / positions];
 *  column c of this rank is column column_begin + c of the whole tensor. The element is kept when
 *      philox_uniform(philox(key, lo(sample), hi(sample), position, column/4).word[column%4]) >= probability
 *  (column the global one), so the mask is the same at every layout. What is kept is divided by 1 - probability. */
typedef struct DropoutMask {
    PhiloxKey key;          /**< philox_key(seed, name of the layer, step) */
    double probability;     /**< that an element is dropped, in [0, 1) */
    const int64_t *samples; /**< [rows / positions] row numbers in the data set */
    int64_t positions;      /**< S, or 1 for a tensor without positions */
    int64_t column_begin;   /**< the number in the whole tensor of this rank's first column */
} DropoutMask;

enum { DROPOUT_BITS = 32 }; /**< elements whose fate one word holds */

/** How many words hold the bits of a row. */
HOST_AND_DEVICE static inline int64_t dropout_words(int64_t columns)
{
    return (columns + DROPOUT_BITS - 1) / DROPOUT_BITS;
}

/** philox_uniform(w) is (w >> 8) 2^-24, so integers are compared: an element is kept if w >> 8 is at least this. */
static inline uint32_t dropout_threshold(double probability)
{
    const double whole = probability * 0x1p24;
    const uint32_t below = (uint32_t)whole;
    return below < whole ? below + 1 : below;
}

/** Draws once what the kernels below read in each pass: kept [rows,dropout_words(columns)], where bit c % DROPOUT_BITS of
 *  word c / DROPOUT_BITS of a row says whether column c is kept. Bits behind the last column are 0. */
void kernel_dropout_draw(int64_t rows, int64_t columns, const DropoutMask *mask, uint32_t *kept);

/** Operations with dropout, each in one pass. */
typedef enum DropoutOperation {
    DROPOUT,      /**< y = kept · x / (1 - probability); its backward is the same function of dy */
    GELU_DROPOUT, /**< y = dropout(gelu(x)) */
    GELU_DROPOUT_BACKWARD, /**< y = gelu'(x) · kept · dy / (1 - probability) */
} DropoutOperation;

/** One of them; dy is NULL but for the backward one. */
void kernel_dropout(DropoutOperation operation, int64_t rows, int64_t columns, double probability,
                    const uint32_t *kept, const real *dy, const real *x, real *y);

/* ---- attention ----------------------------------------------------------------------------------------- */

/** The sizes of attention on this rank. */
typedef struct AttentionShape {
    int64_t batch, positions, heads, head_size; /**< B, S, A and D, of the heads of this rank */
    double factor; /**< scores are factor · q · k: 1/√D as a rule */
} AttentionShape;

/** For each sample and head (Vaswani et al., arXiv:1706.03762, equation 1)
 *  \f[ y = \mathrm{softmax} \left( \mathrm{factor} \cdot q\,k^T \right) v \f]
 *  q, k, v, y [B,S,A·D]; mask [B,S], 0 where a key is hidden: it gets a probability of exactly zero (a row with every
 *  key hidden is the caller's error). Of a row of scores [B,A,S] the highest that is seen, and the sum of
 *  exp(score - highest), are kept for backward. `work`: kernel_attention_work() numbers. */
void kernel_attention_forward(const AttentionShape *shape, const real *q, const real *k,
                              const real *v, const int32_t *mask, real *y, real *highest,
                              real *sums, real *work);

/** Writes dq, dk, dv, from the same arguments as forward and what it has kept; the scores are made again. With the probabilities p
 *  of forward, and ∘ number by number:
 *  \f[ dv = p^T dy, \qquad ds = p \circ \left( dy\,v^T - \mathrm{rowsum}(dy \circ y) \right), \qquad
 *      dq = \mathrm{factor} \cdot ds\,k, \qquad dk = \mathrm{factor} \cdot ds^T q \f] */
void kernel_attention_backward(const AttentionShape *shape, const real *q, const real *k,
                               const real *v, const int32_t *mask, const real *highest,
                               const real *sums, const real *dy, real *dq, real *dk, real *dv,
                               real *work);

/** How many numbers of work space forward and backward need. */
int64_t kernel_attention_work(const AttentionShape *shape);

/* ---- loss ---------------------------------------------------------------------------------------------- */

/** For each row i, with the natural logarithm and gradients that are not yet divided by anything:
 *  \f[ \mathrm{losses}_i = -\log \frac{e^{z_{i,l}}}{\sum_c e^{z_{i,c}}}, \qquad
 *      \mathrm{dlogits}_i = \mathrm{softmax}(z_i) - \mathrm{onehot}(l) \f]
 *  z are the logits [rows,classes], l the row's label. A label outside 0..classes-1 is the caller's error. */
void kernel_cross_entropy(int64_t rows, int64_t classes, const real *logits, const int32_t *labels,
                          real *losses, real *dlogits);

/* ---- element-wise and copies --------------------------------------------------------------------------- */

/** y [count] = value. */
void kernel_vector_fill(int64_t count, double value, real *y);
/** y [count] = x [count]. */
void kernel_vector_copy(int64_t count, const real *x, real *y);
void kernel_vector_add(int64_t count, const real *x, const real *y, real *z); /**< z = x + y */
void kernel_vector_accumulate(int64_t count, const real *x, real *y);         /**< y += x    */
void kernel_vector_scale(int64_t count, double factor, real *x);              /**< x *= factor */

/** The sum of squares of x, summed in double precision. */
double kernel_vector_square_sum(int64_t count, const real *x);

/** Copies a block of `rows` rows of `columns` numbers; consecutive rows lie x_stride and y_stride numbers apart. */
void kernel_copy_rows(int64_t rows, int64_t columns, const real *x, int64_t x_stride, real *y,
                      int64_t y_stride);

/* ---- optimisers ---------------------------------------------------------------------------------------- */

/** PyTorch's SGD: \f$ w \leftarrow w - \mathrm{rate} \cdot (g + \mathrm{weight\_decay} \cdot w) \f$ */
void kernel_sgd_step(int64_t count, real *w, const real *g, double rate, double weight_decay);

/** What a step of AdamW is told, in PyTorch's names. */
typedef struct AdamW {
    double rate, beta1, beta2, epsilon, weight_decay; /**< see kernel_adamw_step() */
    int64_t step;                                     /**< 1 for the first */
    /** A byte for each ADAMW_BLOCK numbers, 0 while none of them has had a gradient other than zero. Their m and v are zeros
     *  then, and a step needs not read them: most rows of an embedding's table. The kernel sets it. NULL: all have had one */
    uint8_t *seen;
} AdamW;
enum { ADAMW_BLOCK = 128 }; /**< numbers that share a byte of AdamW.seen */

/** PyTorch's AdamW (Loshchilov and Hutter, arXiv:1711.05101), m and v being the decaying means of g and g²:
 *  \f[ m \leftarrow \beta_1 m + (1 - \beta_1)\,g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\,g^2 \f]
 *  \f[ w \leftarrow (1 - \mathrm{rate} \cdot \mathrm{weight\_decay})\,w - \mathrm{rate} \cdot
 *      \frac{m / (1 - \beta_1^{\mathrm{step}})}{\sqrt{v / (1 - \beta_2^{\mathrm{step}})} + \epsilon} \f] */
void kernel_adamw_step(int64_t count, real *w, const real *g, real *m, real *v, const AdamW *adamw);

END_C
