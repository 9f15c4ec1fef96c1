/** @file
 * Labels: fields that say what an entry of a stream is about, and what a rank is doing. The judge
 * turns a label into a sentence when it prints it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** The aspect of a thing. */
typedef enum What {
    ITSELF,            /**< the thing as a whole */
    MAKING_OF,         /**< a layer, the groups */
    FORWARD_PASS_OF,   /**< a rank is in it */
    BACKWARD_PASS_OF,  /**< a rank is in it */
    FORWARD_OF,        /**< what the pass sent and multiplied */
    BACKWARD_OF,       /**< what the pass sent and multiplied */
    INPUT_OF,          /**< x of a layer */
    MASK_OF,           /**< of a layer */
    OUTPUT_OF,         /**< of a layer, an operation, an evaluation */
    OTHER_READER_OF,   /**< another operation that reads x of a layer */
    INPUT_GRADIENT_OF, /**< of a layer */
    GRADIENT_OF,       /**< of an operation, a parameter, a bucket */
    VALUE_OF,          /**< of a parameter, after a step */
    LOSS_OF,           /**< of a step of the whole model */
    MEMBERS_OF,        /**< of a group */
    RANK_IN,           /**< a group */
    DEGREE_OF,         /**< a group */
    EXCHANGE_IN,       /**< a group */
    CALL_OF,           /**< the sampler, the metrics */
    ORDER_OF,          /**< what a sampler left in `order` */
    OUTSIDE_MINE,      /**< where a sampler wrote outside `mine` */
    OUTSIDE_ORDER,     /**< where a sampler wrote outside `order` */
    START_OF,          /**< the sum of a bucket */
    END_OF,            /**< the sums of a round's buckets */
} What;

/** The thing. */
typedef enum Thing {
    NOTHING,      /**< no label */
    A_NAME,       /**< a parameter or a function: name */
    A_LAYER,      /**< index 0 or 1; step: evaluations are numbered from STEPS on; or NO_STEP */
    AN_OPERATION, /**< index: a part of labs/f_and_g.h; step: which call, or NO_STEP: extra calls */
    A_PARAMETER,  /**< name; step */
    A_GROUP,      /**< index: a GroupName of labs/groups.h */
    THE_GROUPS,   /**< all groups */
    A_DEAL,       /**< index: rows; step: epoch; detail: see labs/replicas.h */
    A_BUCKET,     /**< index; step: the round */
    A_ROUND,      /**< of buckets; step: which */
    METRICS_OF,   /**< step: which evaluation */
    METRICS_OF_STAGES, /**< of one pipeline; step: which evaluation */
    THE_NORM,          /**< of the gradient; step */
    THE_MODEL,         /**< step */
    A_BLOCK,           /**< index; step, or STEPS: the evaluation */
    EVALUATION,        /**< of the model, between two steps */
    THE_WEIGHTS,       /**< index: a run of labs/lab16.c; step */
    OF_VOCABULARY, /**< index: a function of labs/vocabulary.h; step; detail: 0 or 1, which of two models */
    OF_SHARDS, /**< index: a function of labs/sharded.h; step; detail: which run */
    A_RING,    /**< index: a part of labs/ring.h; step: which call */
    A_SEGMENT, /**< index: a call in a pass, or ALL_CALLS of labs/segments.h; step: evaluations are numbered from STEPS on; detail: 1 for a run without recomputation, also of A_PARAMETER */
    A_SEQUENCE, /**< index: see labs/sequence.h; step: the evaluation is numbered STEPS */
} Thing;

enum {
    NO_STEP = -1, /**< a label without a step */
    LAYERS = 2,   /**< per case of labs 2 to 7 and 20 */
    STEPS = 2,    /**< training steps of a scenario; evaluations are numbered after them */
    DIVERGED =
        -2, /**< the last step, in which the first number of x and of each parameter is NaN */
};

/** What an entry is about. Entries of the judge and of a rank correspond if all fields are
 *  equal. */
typedef struct Label {
    int32_t what, of;            /**< a What, a Thing */
    int32_t index, step, detail; /**< see Thing; from 0 */
    char name[44];               /**< of a parameter or a function */
} Label;

/** Are all fields of two labels equal? */
static inline bool label_equal(const Label *a, const Label *b)
{
    return a->what == b->what && a->of == b->of && a->index == b->index && a->step == b->step &&
           a->detail == b->detail && !strncmp(a->name, b->name, sizeof a->name);
}

/** A label without detail and name. */
static inline Label label_of(What what, Thing of, int index, int step)
{
    return (Label){.what = what, .of = of, .index = index, .step = step};
}

/** A label with only a name. */
static inline Label label_named(const char *name)
{
    Label label = {.of = A_NAME};
    snprintf(label.name, sizeof label.name, "%s", name);
    return label;
}
