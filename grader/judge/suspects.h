/** @file
 * Wrong answers that students give, computed: when what came out equals one of them, the report can name the
 * cause. The judge is linked with --wrap for the words that a suspect changes, so the plain layers stay as
 * they are.
 */
#ifndef BALISE_GRADER_SUSPECTS_H
#define BALISE_GRADER_SUSPECTS_H

#include "grader/protocol.h"

/** The mistakes, each with its sentence in suspects.c. */
typedef enum SuspectKind {
    OWN_ONLY,
    COUNTED_TWICE,
    PAIRS_ONLY,
    CHANGED_INPUT,
    OTHER_REPLICAS,
    NOT_DIVIDED,
    DIVIDED_TWICE,
    DIVIDED_BY_WORLD,
    DIVIDED_BY_TP,
    DIVIDED_ALONE,
    OVER_TP,
    OVER_TP_BY_DP,
    OVER_THE_WORLD,
    OVER_THE_WORLD_BY_DP,
    ONE_REPLICA,
    GRADIENT_TIMES_RANKS,
    GRADIENT_TWICE_TIMES_RANKS,
    GRADIENT_OVER_RANKS,
    GRADIENT_MISSING,
    FACTOR_HIDDEN,
    FACTOR_SHARE, /* before one that it may equal: that one fails on one rank as well */
    FACTOR_MISSING,
    FACTOR_NO_ROOT,
    FACTOR_INVERSE,
    FACTOR_WIDTH,
    FACTOR_HEADS,
    KEY_VALUE_SWAPPED,
    QUERY_KEY_SWAPPED,
    MASK_IGNORED,
    HEADS_TOTAL,
    HEADS_ONE,
    GELU_MISSING,
    GELU_TWICE,
    GELU_AFTER,
    DROPOUT_FIRST,
    DROPOUT_LAST,
    DROPOUT_MISSING,
    DROPOUT_TWICE,
    DROPOUT_COMPLEMENT,
    DROPOUT_REPEATED,
    RESIDUAL_1_MISSING,
    RESIDUAL_2_MISSING,
    NORM_1_MISSING,
    NORM_2_MISSING,
    NORM_1_BY_2,
    NORM_2_BY_1,
    RESIDUAL_1_OF_NORM,
    RESIDUAL_2_OF_NORM,
    NORM_AFTER,
    TOKEN_LAST,
    TOKEN_MEAN,
    ACTIVATION_RELU,
    ACTIVATION_TANH,
    ACTIVATION_SILU,
    ACTIVATION_APPROXIMATE,
    DROPOUT_HALVED,
    DROPOUT_FIXED_HALF,
    DROPOUT_FIXED_TENTH,
    HEADS_DEALT,
    KEY_OF_FIRST,
    VALUE_OF_FIRST,
    KEY_VALUE_OF_FIRST,
    MASK_AS_LENGTH,
    FIRST_WEIGHT_SHARED,
    ALL_WEIGHTS_SHARED,
    GRADIENT_OF_FIRST_PART,
    SUSPECTS
} SuspectKind;

/** From now on the judge's words make the mistake of this suspect (NO_SUSPECT: none), until suspect_end(). */
void suspect_begin(int suspect, const Case *c);
/** The words are right again. */
void suspect_end(void);

#endif
