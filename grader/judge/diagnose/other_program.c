/* Does the rank run other operations than the plain layer? */
#include "grader/judge/diagnose/evidence.h"
#include "grader/judge/reason/program.h"
#include "grader/labs/scenario.h"

enum { ANY_LAYER = -1 };

/* The operations of this forward pass that the rank has recorded. They are consecutive. */
static OperationList program_of_rank(const RankCalls *mine, Label pass)
{
    OperationList p = {0};
    for (int64_t i = 0; i < mine->operations_count; i++) {
        const TapeOperation *o = &mine->operation[i];
        if (o->back || !label_equal(&o->where, &pass))
            continue;
        if (!p.count++)
            p.operation = o;
    }
    const bool is_cut = mine->operations_count == RING_OPERATIONS &&
                        p.operation + p.count == mine->operation + RING_OPERATIONS;
    return is_cut ? (OperationList){0} : p;
}

/* The first difference of the case's programs; only of this layer, unless it is ANY_LAYER. */
static bool differs_from_plain(Trial *t, int layer, ProgramDifference *difference)
{
    const Calls *calls = t->outcome->calls;
    if (!t->program.all.base)
        t->program = expect(t->c, t->rank, THE_PROGRAM, 0);
    for (const Entry *entry = NULL; (entry = next_entry(t->program.all, entry));) {
        if (entry->kind != PROGRAM || (layer != ANY_LAYER && layer_of(&entry->label) != layer))
            continue;
        const OperationList plain = {(const TapeOperation *)numbers_of(entry),
                                     entry->count * (int64_t)sizeof(double) /
                                         (int64_t)sizeof(TapeOperation)};
        if (program_difference(program_of_rank(&calls->rank[t->rank], entry->label), plain,
                               difference))
            return true;
    }
    return false;
}

/* Nothing is exchanged on one rank. So if its results are right, its other program is an equivalent
 * one. */
void note_equivalent(Trial *t)
{
    const CheckResult *forward = &t->result->check[FORWARD];
    ProgramDifference difference;
    if (t->c->world == 1 && alike_on_ranks(t->c) && forward->looks && !forward->fails &&
        t->outcome->calls && !t->result->equivalent &&
        differs_from_plain(t, ANY_LAYER, &difference))
        t->result->equivalent = difference.address;
}

/* Is this the gradient of a parameter that no operation of the rank takes in this step? */
bool parameter_not_read(const Evidence *e)
{
    const Calls *calls = e->trial->outcome->calls;
    if (!calls || e->want->label.of != A_PARAMETER)
        return false;
    const RankCalls *mine = &calls->rank[e->trial->rank];
    int64_t others = 0;
    for (int64_t i = 0; i < mine->operations_count; i++) {
        const TapeOperation *o = &mine->operation[i];
        for (int k = 0; k < o->inputs && k < MOST_INPUTS && o->where.step == e->want->label.step;
             k++)
            if (!strcmp(o->input[k].parameter, e->want->label.name))
                return false;
        others += o->where.step == e->want->label.step;
    }
    return others > 0 && mine->operations_count < RING_OPERATIONS &&
           says(
               e,
               _("it is zero everywhere: no operation on the tape takes this parameter (a group_... "
                 "function gives values only, and so does tensor_copy())"));
}

/* If the forward pass is right, another program is an equivalent one, or a part of it is not on the
 * tape. An evaluation records nothing, but runs what a training pass runs. What an operation of the
 * lab's own computes, its numbers may say. In which cases it differs tells nothing if it is in most:
 * some results do not depend on it. */
bool program_is_another(const Evidence *e)
{
    Trial *t = e->trial;
    ProgramDifference difference;
    if (!t->outcome->calls || !alike_on_ranks(e->c) || all_outputs_right(e) ||
        !differs_from_plain(t, layer_of(&e->want->label), &difference) ||
        (difference.address && difference.address == t->result->equivalent))
        return false;
    if (difference.is_own && suspected(e))
        append(e->text, e->size, "\n%s", difference.text);
    else
        says(e, "%s", difference.text);
    t->explained_as = IF_IN_FEW;
    return true;
}
