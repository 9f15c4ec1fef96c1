/* Does the rank run other operations than the plain layer? */
#include "grader/judge/diagnose/evidence.h"
#include "grader/judge/reason/program.h"
#include "grader/labs/scenario.h"

/* The operations of this forward pass that the rank has recorded. They are consecutive. */
static Program program_of_rank(const RankCalls *mine, Label pass)
{
    Program p = {0};
    for (int64_t i = 0; i < mine->operations_count; i++) {
        const TapeOperation *o = &mine->operation[i];
        if (o->back || !label_equal(&o->where, &pass))
            continue;
        if (!p.count++)
            p.operation = o;
    }
    const bool is_cut = mine->operations_count == RING_OPERATIONS &&
                        p.operation + p.count == mine->operation + RING_OPERATIONS;
    return is_cut ? (Program){0} : p;
}

/* If the forward pass is right, another program is an equivalent one, or a part of it is not on the
 * tape. The passes of the layer that the wrong numbers are about, up to the first whose program differs.
 * An evaluation records nothing, but runs what a training pass runs. */
bool program_is_another(const Evidence *e)
{
    Trial *t = e->trial;
    const Calls *calls = t->outcome->calls;
    if (!calls || !alike_on_ranks(e->c) || all_outputs_right(e))
        return false;
    if (!t->program.all.base)
        t->program = expect(e->c, t->rank, THE_PROGRAM, 0);
    for (const Entry *entry = NULL; (entry = next_entry(t->program.all, entry));) {
        if (entry->kind != PROGRAM || layer_of(&entry->label) != layer_of(&e->want->label))
            continue;
        const Program plain = {(const TapeOperation *)numbers_of(entry),
                               entry->count * (int64_t)sizeof(double) /
                                   (int64_t)sizeof(TapeOperation)};
        if (program_difference(program_of_rank(&calls->rank[t->rank], entry->label), plain, e->text,
                               e->size)) {
            append_variables(t, e->text, e->size);
            return true;
        }
    }
    return false;
}
