/* Descriptions of labels. */
#include "grader/labs/sharded.h"
#include "grader/labs/labels.h"

#include "base/language.h"
#include "grader/labs/f_and_g.h"
#include "grader/labs/groups.h"
#include "grader/labs/replicas.h"
#include "grader/labs/ring.h"
#include "grader/labs/segments.h"
#include "grader/labs/sequence.h"
#include "grader/labs/vocabulary.h"

enum { MOST_WHATS = END_OF + 1 };

const char *const group_names[AXES] = {"tp", "dp", "pp"};

/* The texts for most things; %s is the thing. */
static const char *const of_things[MOST_WHATS] = {
    [ITSELF] = "%s",
    [MAKING_OF] = N_("creation of %s"),
    [FORWARD_PASS_OF] = N_("forward pass of %s"),
    [BACKWARD_PASS_OF] = N_("backward pass of %s"),
    [FORWARD_OF] = N_("forward of %s"),
    [BACKWARD_OF] = N_("backward of %s"),
    [INPUT_OF] = N_("input of %s"),
    [MASK_OF] = N_("mask of %s"),
    [OUTPUT_OF] = N_("output of %s"),
    [OTHER_READER_OF] = N_("another operation that reads x of %s"),
    [INPUT_GRADIENT_OF] = N_("input gradient of %s"),
    [GRADIENT_OF] = N_("gradient of %s"),
    [VALUE_OF] = N_("value of %s"),
    [MEMBERS_OF] = N_("members of the %s group"),
    [RANK_IN] = N_("rank of the %s group"),
    [DEGREE_OF] = N_("degree of the %s group"),
    [EXCHANGE_IN] = N_("exchange in the %s group"),
    [CALL_OF] = N_("sampler_set_epoch, %s"),
    [ORDER_OF] = N_("order, %s"),
};

/* The number of the label's step or call, from 1. */
static int number_of(const Label *l)
{
    return 1 + (l->step == DIVERGED ? STEPS : l->step);
}

static void layer_text(const Label *l, char text[LABEL_SIZE])
{
    char layer[64];
    snprintf(layer, sizeof layer, l->name[0] ? _("%s of %s") : "%.0s%s", l->name,
             l->index == 0 ? _("the first layer") : _("the second layer"));
    if (l->step == NO_STEP)
        snprintf(text, LABEL_SIZE, "%s", layer);
    else if (l->step < STEPS)
        snprintf(text, LABEL_SIZE, _("%s, step %d"), layer, number_of(l));
    else
        snprintf(text, LABEL_SIZE, _("%s, evaluation %d"), layer, l->step - STEPS + 1);
}

/* Short names from the lab's text describe what a rank is doing; the names of the kit's functions
 * describe measurements. */
static void operation_text(const Label *l, char text[LABEL_SIZE])
{
    static const char *const short_names[PARTS] = {"f", "g", "all_gather", "all_gather", "g", "g"};
    unsigned part = (unsigned)l->index % PARTS;
    if (l->step == NO_STEP)
        snprintf(text, LABEL_SIZE, "%s", _("once more, in the first replica only"));
    else if (l->what == FORWARD_PASS_OF || l->what == BACKWARD_PASS_OF)
        snprintf(text, LABEL_SIZE,
                 l->what == FORWARD_PASS_OF ? _("%s, forward, call %d")
                                            : _("%s, backward, call %d"),
                 short_names[part], number_of(l));
    else
        snprintf(text, LABEL_SIZE, _("%s, call %d"), _(operation_names[part]), number_of(l));
}

static void deal_text(const Label *l, char text[LABEL_SIZE])
{
    static const char *const tails[DEAL_TAIL + 1] = {
        [EVERY_ROW_ONCE] = "EVERY_ROW_ONCE", [PAD] = "PAD", [DROP] = "DROP", [DEAL_TAIL] = "?"};
    snprintf(text, LABEL_SIZE,
             l->index == 1 ? _("%d row, %s, epoch %d%s%s") : _("%d rows, %s, epoch %d%s%s"),
             l->index, tails[l->detail & DEAL_TAIL], l->step,
             l->detail & DEAL_OF_ANOTHER_SEED ? _(", another seed") : "",
             l->detail & DEAL_AGAIN ? _(", once more") : "");
}

/* Labels with sentences of their own. */
static bool whole_text(const Label *l, char text[LABEL_SIZE])
{
    static const struct {
        int of, what;
        const char *then, *otherwise; /* for this What; for any other */
    } sentences[] = {
        {A_BUCKET, START_OF, N_("bucket_ready, bucket %d, round %d"),
         N_("gradients in bucket %d, round %d")},
        {A_ROUND, END_OF, N_("buckets_finish, round %d"), N_("gradients, round %d")},
        {METRICS_OF, CALL_OF, N_("metrics_synchronise, evaluation %d"),
         N_("loss_sum, correct and count of evaluation %d")},
        {METRICS_OF_STAGES, CALL_OF, N_("metrics_over_stages, evaluation %d"),
         N_("loss_sum, correct and count of a pipeline, evaluation %d")},
        {THE_NORM, CALL_OF, N_("gradient_norm, step %d"), N_("norm of the gradient, step %d")},
        {THE_MODEL, LOSS_OF, N_("loss of step %d of the whole model"),
         N_("step %d of the whole model")},
        {THE_WEIGHTS, CALL_OF, N_("average_is_due and average_weights after step %d of run %d"),
         N_("weights after step %d of run %d")},
        {EVALUATION, LOSS_OF, N_("loss of the evaluation"), N_("evaluation of the whole model")},
        {THE_GROUPS, MAKING_OF, N_("creation of the groups"), N_("the groups")},
    };
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
        if (sentences[i].of == l->of) {
            const char *format =
                _(l->what == sentences[i].what ? sentences[i].then : sentences[i].otherwise);
            snprintf(text, LABEL_SIZE, format, l->of == A_BUCKET ? l->index : number_of(l),
                     l->of == THE_WEIGHTS ? l->index + 1 : number_of(l));
            return true;
        }
    return false;
}

static void shards_text(const Label *l, char text[LABEL_SIZE])
{
    const int call = l->index;
    if (call >= SHARDED_CALLS)
        snprintf(text, LABEL_SIZE, "optimizer_part");
    else if (l->what == CALL_OF)
        snprintf(text, LABEL_SIZE, _("%s, step %d of run %d"), sharded_functions[call],
                 number_of(l), l->detail + 1);
    else
        snprintf(text, LABEL_SIZE,
                 call == SHARDED_REDUCE    ? _("gradients of a replica's part, step %d of run %d")
                 : call == SHARDED_SQUARES ? _("squares of the gradients, step %d of run %d")
                                           : _("weights after step %d of run %d"),
                 number_of(l), l->detail + 1);
}

static void segment_text(const Label *l, char text[LABEL_SIZE])
{
    const bool trains = l->step < STEPS;
    if (l->index == ALL_CALLS)
        snprintf(text, LABEL_SIZE,
                 trains ? _("all segments, step %d") : _("all segments, evaluation"), number_of(l));
    else
        snprintf(text, LABEL_SIZE,
                 trains ? _("call %d of a segment, step %d")
                        : _("call %d of a segment, evaluation"),
                 l->index + 1, number_of(l));
    if (l->detail)
        snprintf(text + strlen(text), LABEL_SIZE - strlen(text), "%s",
                 _(", without recomputation"));
}

static void sequence_text(const Label *l, char text[LABEL_SIZE])
{
    char thing[LABEL_SIZE];
    if (l->index < ALL_POSITIONS)
        snprintf(thing, LABEL_SIZE, _("%s, call %d"),
                 l->index % CALL_PARTS == GATHER_SEQUENCE ? "gather_sequence"
                                                          : "reduce_scatter_sequence",
                 l->index / CALL_PARTS + 1);
    else if (l->index < FIRST_BLOCK)
        snprintf(thing, LABEL_SIZE, "%s",
                 l->index == NORM_GRADIENTS ? "sum_norm_gradients" : _("all blocks"));
    else
        snprintf(thing, LABEL_SIZE, _("block %d"), l->index - FIRST_BLOCK + 1);
    snprintf(text, LABEL_SIZE, l->step < STEPS ? _("%s, step %d") : _("%s, evaluation"), thing,
             number_of(l));
}

static void thing_text(const Label *l, char text[LABEL_SIZE])
{
    switch (l->of) {
    case A_LAYER:
        layer_text(l, text);
        break;
    case AN_OPERATION:
        operation_text(l, text);
        break;
    case OF_VOCABULARY:
        snprintf(text, LABEL_SIZE, _("%s, model %d, step %d"),
                 _(vocabulary_functions[(unsigned)l->index % (ALL_FUNCTIONS + 1)]), l->detail + 1,
                 number_of(l));
        break;
    case A_RING:
        snprintf(text, LABEL_SIZE, _("%s, call %d"),
                 ring_functions[(unsigned)l->index % RING_PARTS], number_of(l));
        break;
    case A_SEGMENT:
        segment_text(l, text);
        break;
    case A_SEQUENCE:
        sequence_text(l, text);
        break;
    case A_DEAL:
        deal_text(l, text);
        break;
    case A_PARAMETER:
        snprintf(text, LABEL_SIZE, _("%s, step %d"), l->name, number_of(l));
        break;
    case A_BLOCK:
        snprintf(text, LABEL_SIZE,
                 l->step < STEPS ? _("block %d, step %d") : _("block %d, evaluation"), l->index,
                 number_of(l));
        if (l->detail > 0)
            snprintf(text + strlen(text), LABEL_SIZE - strlen(text), _(", micro-batch %d"),
                     l->detail - 1);
        break;
    case A_GROUP:
        snprintf(text, LABEL_SIZE, "%s", group_names[l->index]);
        break;
    default:
        snprintf(text, LABEL_SIZE, "%s", l->name);
    }
}

const char *label_text(const Label *label, char text[LABEL_SIZE])
{
    Label l = *label;
    char thing[LABEL_SIZE];
    l.name[sizeof l.name - 1] = '\0';
    if (whole_text(&l, text))
        return text;
    if (l.of == OF_SHARDS) {
        shards_text(&l, text);
        return text;
    }
    thing_text(&l, thing);
    bool passes = l.of == AN_OPERATION && (l.what == FORWARD_PASS_OF || l.what == BACKWARD_PASS_OF);
    const char *of = l.what >= 0 && l.what < MOST_WHATS && !passes ? of_things[l.what] : NULL;
    snprintf(text, LABEL_SIZE, of ? _(of) : "%s", thing);
    return text;
}
