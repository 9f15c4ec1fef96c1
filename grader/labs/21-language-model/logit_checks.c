/* Lab 21: does exp overflow, and are logits gathered? */
#include <math.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/vocabulary.h"

/* Is a language model's loss infinite or NaN where logits are in the thousands or more? Then what
 * follows from it is wrong too. */
static bool exp_overflows(const Evidence *e)
{
    Label label = label_of(OUTPUT_OF, OF_VOCABULARY, LOSS, e->want->label.step);
    if (e->c->exponent <= 0)
        return false;
    for (label.detail = 0; label.detail < LAYERS; label.detail++) {
        const Entry *loss = entry_of_rank(e->trial, e->trial->rank, VALUES, label);
        if (!loss || loss->count != 1 || isfinite(numbers_of(loss)[0]))
            continue;
        if (numbers_of(loss)[0] == -INFINITY)
            return says(e,
                        _("every exp of a row has underflowed to 0, whose logarithm is -inf: "
                          "the number subtracted exceeds the largest logit of the row. "
                          "Subtract the largest over the ranks of mesh->tp: then one term is 1"));
        return says(
            e,
            _("exp has overflowed: logits are in the thousands here. Subtract the largest of the whole row, over the ranks of mesh->tp: then no term is above 1, and one is 1"));
    }
    return false;
}

Finder *const vocabulary_reasons[] = {input_altered, exp_overflows, not_a_number, NULL};

/* Do ranks gather their logits in a language model's head or loss? A gather of what a row needs has
 * at most three numbers for each position. */
static bool gathers_logits(const Trial *t)
{
    const Calls *calls = t->outcome->calls;
    for (int rank = 0; calls && rank < calls->ranks; rank++)
        for (int64_t i = 0; i < calls->rank[rank].count; i++) {
            const Call *call = &calls->rank[rank].call[i];
            if (call->where.of == OF_VOCABULARY && call->where.what == FORWARD_PASS_OF &&
                call->where.index != EMBEDDING && strstr(call->name, "gather") &&
                call->sent[0].count > 3 * (int64_t)t->c->B * t->c->S)
                return true;
        }
    return false;
}

void vocabulary_ending(const Trial *t, char *text, size_t size)
{
    if (gathers_logits(t))
        append(text, size, "%s\n",
               _("the logits are gathered: no rank needs those of the others. For each row, the "
                 "maximum, the sum of exp and the logit of the target suffice"));
}
