/** @file
 * The reference backend under other names, for programs that also link the cpu backend: after
 * compiling, kernel_x in its objects is renamed to reference_x. test_gradients_double.c checks
 * these declarations against backend.h.
 */
#pragma once

#include "backend/backend.h"
#include "backend/reference/rounding.h"

#ifdef BALISE_DOUBLE
typedef Numbers DoubleNumbers;
#else
/** The Numbers of a backend in double precision. */
typedef struct DoubleNumbers {
    double *reals;
    uint16_t *halves;
} DoubleNumbers;
#endif

static inline DoubleNumbers in_double(const double *x)
{
    return (DoubleNumbers){(double *)x, NULL};
}

void reference_linear_forward(int64_t rows, int64_t in, int64_t out, DoubleNumbers x,
                              DoubleNumbers weight, const double *bias, DoubleNumbers y);
void reference_linear_backward_input(int64_t rows, int64_t in, int64_t out, DoubleNumbers dy,
                                     DoubleNumbers weight, DoubleNumbers dx, bool accumulate);
void reference_linear_backward_weight(int64_t rows, int64_t in, int64_t out, DoubleNumbers dy,
                                      DoubleNumbers x, double *dweight, bool accumulate);
void reference_linear_backward_bias(int64_t rows, int64_t out, DoubleNumbers dy, double *dbias);
void reference_round(int64_t count, const double *x, uint16_t *y);
void reference_widen(int64_t count, const uint16_t *x, double *y);
void reference_add_halves(int64_t rows, int64_t columns, const uint16_t *x, uint16_t *sums);
void reference_lookup_forward(int64_t count, int64_t columns, const int32_t *ids,
                              DoubleNumbers table, DoubleNumbers y);
void reference_lookup_backward(int64_t count, int64_t columns, const int32_t *ids, const double *dy,
                               double *dtable);
void reference_layer_norm_forward(int64_t rows, int64_t columns, const double *x,
                                  const double *weight, const double *bias, double epsilon,
                                  DoubleNumbers y, double *mean, double *rstd);
void reference_layer_norm_backward(int64_t rows, int64_t columns, const double *dy, const double *x,
                                   const double *weight, const double *mean, const double *rstd,
                                   double *dx, bool accumulate, double *dweight, double *dbias);
void reference_rms_norm_forward(int64_t rows, int64_t columns, const double *x,
                                const double *weight, double epsilon, DoubleNumbers y,
                                double *rstd);
void reference_rms_norm_backward(int64_t rows, int64_t columns, const double *dy, const double *x,
                                 const double *weight, const double *rstd, double *dx,
                                 bool accumulate, double *dweight);
void reference_gelu_forward(int64_t count, DoubleNumbers x, DoubleNumbers y);
void reference_gelu_backward(int64_t count, DoubleNumbers dy, DoubleNumbers x, DoubleNumbers dx);
void reference_gelu_tanh_forward(int64_t count, DoubleNumbers x, DoubleNumbers y);
void reference_gelu_tanh_backward(int64_t count, DoubleNumbers dy, DoubleNumbers x,
                                  DoubleNumbers dx);
void reference_swiglu_forward(int64_t count, DoubleNumbers gate, DoubleNumbers up, DoubleNumbers y);
void reference_swiglu_backward(int64_t count, DoubleNumbers dy, DoubleNumbers gate,
                               DoubleNumbers up, DoubleNumbers dgate, DoubleNumbers dup);
void reference_tanh_forward(int64_t count, const double *x, double *y);
void reference_tanh_backward(int64_t count, const double *dy, const double *y, double *dx);
void reference_dropout_draw(int64_t rows, int64_t columns, const DropoutMask *mask, uint32_t *kept);
void reference_dropout(DropoutOperation operation, int64_t rows, int64_t columns,
                       double probability, const uint32_t *kept, DoubleNumbers dy, DoubleNumbers x,
                       DoubleNumbers y);
void reference_rotary(const Rotary *rotary, bool back, DoubleNumbers x, DoubleNumbers y);
void reference_attention_forward(const AttentionShape *shape, DoubleNumbers q, DoubleNumbers k,
                                 DoubleNumbers v, const int32_t *mask, DoubleNumbers y,
                                 double *highest, double *sums, double *work);
void reference_attention_backward(const AttentionShape *shape, DoubleNumbers q, DoubleNumbers k,
                                  DoubleNumbers v, const int32_t *mask, const double *highest,
                                  const double *sums, DoubleNumbers dy, DoubleNumbers dq,
                                  DoubleNumbers dk, DoubleNumbers dv, double *work);
int64_t reference_attention_work(const AttentionShape *shape);
void reference_cross_entropy(int64_t rows, int64_t classes, const double *logits,
                             const int32_t *labels, double *losses, double *dlogits);
void reference_row_max(int64_t rows, int64_t columns, const double *x, double *most);
void reference_row_sum_exp_forward(int64_t rows, int64_t columns, const double *x,
                                   const double *most, double *sums);
void reference_row_sum_exp_backward(int64_t rows, int64_t columns, const double *dsums,
                                    const double *x, const double *most, double *dx,
                                    bool accumulate);
void reference_row_pick_forward(int64_t rows, int64_t columns, const double *x, const double *most,
                                const int32_t *ids, double *y);
void reference_row_pick_backward(int64_t rows, int64_t columns, const double *dy,
                                 const int32_t *ids, double *dx);
void reference_logarithm_forward(int64_t count, const double *x, double *y);
void reference_logarithm_backward(int64_t count, const double *dy, const double *x, double *dx);
void reference_vector_subtract(int64_t count, const double *x, const double *y, double *z);
void reference_vector_fill(int64_t count, double value, double *y);
void reference_vector_copy(int64_t count, const double *x, double *y);
void reference_vector_add(int64_t count, const double *x, DoubleNumbers y, double *z);
void reference_vector_accumulate(int64_t count, const double *x, double *y);
void reference_vector_scale(int64_t count, double factor, double *x);
double reference_vector_square_sum(int64_t count, const double *x);
void reference_copy_rows(int64_t rows, int64_t columns, const double *x, int64_t x_stride,
                         double *y, int64_t y_stride);
void reference_sgd_step(int64_t count, double *w, const double *g, double rate,
                        double weight_decay);
void reference_adamw_step(int64_t count, double *w, const double *g, double *m, double *v,
                          const AdamW *adamw);
