/** @file
 * Students' mistakes that the judge can reproduce. If a mistake gives a rank's numbers, the report
 * names the mistake.  */
#pragma once

/** The mistakes, each with its sentence in judge/diagnose/suspects.c. */
typedef enum Mistake {
    THE_PROGRAM = -2, /* none; the operations are recorded */
    NO_MISTAKE = -1,
    CHANGED_INPUT,
    GRADIENT_MISSING,
    OWN_MAXIMUM,
    OWN_MAXIMUM_IN_SUM,
    OWN_MAXIMUM_IN_TARGET,
    OWN_SUM,
    OWN_TARGETS,
    TARGETS_TIMES_RANKS,
    SUM_TIMES_RANKS,
    NOTHING_EXCHANGED,
    TARGETS_NOT_MOVED,
    TARGETS_BY_PRODUCT,
    OTHERS_AS_FIRST,
    MAXIMUM_NOT_IN_TARGET,
    MAXIMUM_ONLY_IN_TARGET,
    MEAN_OVER_POSITIONS,
    MEAN_OVER_SAMPLES,
    SUM_OVER_TOKENS,
    POSITIONS_COUNTED,
    OWN_TOKENS,
    SUM_OFF_TAPE,
    TARGETS_OFF_TAPE,
    SUM_BY_MAXIMUM, /* has the gradients of SUM_OFF_TAPE, so it comes later; the next one likewise */
    TARGETS_BY_MAXIMUM,
    BIAS_MISSING,
    PRODUCT_OVER_RANKS,
    SCATTERED_FIRST,
    SCATTERED_BY_WORLD,
    GRADIENT_OF_OWN_PART,
    SEGMENT_NOT_RUN,
    GRADIENT_OF_RESULT, /* comes before mistakes that assume more */
    GRADIENT_OF_RESULT_TOO,
    GRADIENT_IS_INPUT,
    SEGMENT_OF_LAST_CALL,
    RUN_ON_GRADIENT,
    RUN_ON_RESULT,
    RUN_ON_RUN,
    BACKWARD_FROM_INPUT,
    BACKWARD_FROM_RESULT,
    MISTAKES
} Mistake;

/** Sets of mistakes; a kind of case lists those that its numbers can reveal. */
typedef enum MistakeFamily {
    IN_SUMS = 1,             /**< their input, which something else reads, too */
    IN_INPUT_GRADIENTS = 32, /**< of a layer */
    IN_TOKENS = 64,          /**< of a classifier: its output is one row for each sample */
    IN_TABLE_ROWS = 1024,    /**< which rows a lookup takes */
    IN_VOCABULARY = 2048,    /**< of a loss over the vocabulary */
    IN_BIASES = 8192,        /**< of a linear layer */
    IN_SCATTERS = 32768,     /**< which part a rank takes, and its gradient */
    IN_SEGMENTS = 1 << 18,   /**< their second run */
    IN_SEQUENCE = 1 << 20,   /**< on a shard of the positions: none is replayed */
} MistakeFamily;
