/** @file
 * What an entry of a stream is about, and what a rank is at: fields, of which the judge makes a sentence when it prints one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** What of it. */
typedef enum What {
    ITSELF,            /**< the thing as a whole */
    MAKING_OF,         /**< a layer, the groups */
    FORWARD_PASS_OF,   /**< a rank is in it */
    BACKWARD_PASS_OF,  /**< a rank is in it */
    FORWARD_OF,        /**< what the pass has sent and multiplied */
    BACKWARD_OF,       /**< what the pass has sent and multiplied */
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
    OUTSIDE_MINE,      /**< where a sampler wrote outside of `mine` */
    OUTSIDE_ORDER,     /**< likewise */
    START_OF,          /**< the exchange of a bucket */
    END_OF,            /**< the exchange of a round's buckets */
} What;

/** What it is. */
typedef enum Thing {
    NOTHING,      /**< no label */
    A_NAME,       /**< a parameter or a function: name */
    A_LAYER,      /**< index 0 or 1; step, from STEPS on an evaluation, or NO_STEP */
    AN_OPERATION, /**< index: a part of labs/operations.h; step: which call, or NO_STEP: once more */
    A_PARAMETER,  /**< name; step */
    A_GROUP,      /**< index: 0 tp, 1 dp */
    THE_GROUPS,   /**< all that are made */
    A_DEAL,       /**< index: rows; step: epoch; detail: see labs/replicas.h */
    A_BUCKET,     /**< index; step: the round */
    A_ROUND,      /**< of buckets; step: which */
    METRICS_OF,   /**< step: which evaluation */
    THE_MODEL,    /**< step */
    A_BLOCK,      /**< index; step, or STEPS: the evaluation */
    EVALUATION,   /**< of the model, between two steps */
} Thing;

enum {
    NO_STEP = -1, /**< a label that is of no step */
    LAYERS = 2,   /**< of a case of labs 2 to 7 */
    STEPS = 2,    /**< that a scenario trains; evaluations come behind them */
};

/** What an entry is about: an entry of the judge and that of a rank are the same where all fields are. */
typedef struct Label {
    int32_t what, of;            /**< a What, a Thing */
    int32_t index, step, detail; /**< see Thing; from 0 */
    char name[44];               /**< of a parameter or a function */
} Label;

/** Whether two labels are the same. */
static inline bool label_equal(const Label *a, const Label *b)
{
    return a->what == b->what && a->of == b->of && a->index == b->index && a->step == b->step &&
           a->detail == b->detail && !strncmp(a->name, b->name, sizeof a->name);
}

/** The label of a thing that has no detail and no name. */
static inline Label label_of(What what, Thing of, int index, int step)
{
    return (Label){.what = what, .of = of, .index = index, .step = step};
}

/** The label of a name alone. */
static inline Label label_named(const char *name)
{
    Label label = {.of = A_NAME};
    snprintf(label.name, sizeof label.name, "%s", name);
    return label;
}
