/** @file
 * Students' mistakes that the judge can reproduce. If a mistake gives a rank's numbers, the report
 * names the mistake.  */
#pragma once

/** The mistakes, each with its sentence in judge/diagnose/suspects.c. */
typedef enum Mistake {
    THE_PROGRAM = -2, /* none; the operations are recorded */
    NO_MISTAKE = -1,
    NO_LAYER_GRADIENT, /* no mistake: the gradient of x without what comes through the layer */
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

/** What a kind of case computes, which decides what its numbers can reveal. */
typedef enum MistakeFamily {
    IN_INPUT_GRADIENTS = 32, /**< gradients of a layer's input */
    IN_TOKENS = 64,          /**< of a classifier: its output is one row for each sample */
    IN_SCATTERS = 32768,     /**< a part along a dimension */
    IN_SEGMENTS = 1 << 18,   /**< their second run */
    IN_SEQUENCE = 1 << 20,   /**< on a shard of the positions: none is replayed */
} MistakeFamily;
