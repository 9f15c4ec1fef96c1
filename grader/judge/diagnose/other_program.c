/* Does the rank run other operations than the plain layer? */
#include "grader/judge/diagnose/evidence.h"
#include "grader/judge/reason/program.h"
#include "grader/labs/groups.h"
#include "grader/labs/scenario.h"

enum { ANY_LAYER = -1 };

/* Are the operations of the lab's passes recorded, here and in the plain layer? Where a lab calls
 * the kit's segments, they are the kit's. */
static bool has_programs(const Evidence *e)
{
    return e->trial->outcome->calls && alike_on_ranks(e->c) &&
           !e->trial->result->lab->backward_first;
}

/* The operations of this pass that the rank has recorded. They are consecutive. */
static OperationList program_of_rank(const RankCalls *mine, Label pass)
{
    OperationList p = {0};
    for (int64_t i = 0; i < mine->operations_count; i++) {
        const TapeOperation *o = &mine->operation[i];
        if (!label_equal(&o->where, &pass))
            continue;
        if (!p.count++)
            p.operation = o;
    }
    const bool is_cut = mine->operations_count == RING_OPERATIONS &&
                        p.operation + p.count == mine->operation + RING_OPERATIONS;
    return is_cut ? (OperationList){0} : p;
}

static OperationList program_of(const Entry *entry)
{
    return (OperationList){(const TapeOperation *)numbers_of(entry),
                           entry->count * (int64_t)sizeof(double) / (int64_t)sizeof(TapeOperation)};
}

/* The next recorded pass of the plain layer in this direction; of this layer, or of ANY_LAYER. */
static const Entry *next_pass(Trial *t, const Entry *last, What what, int layer)
{
    while ((last = next_entry(computed(t, &t->program, THE_PROGRAM)->all, last)))
        if (last->kind == PROGRAM && last->label.what == (int)what &&
            (layer == ANY_LAYER || layer_of(&last->label) == layer))
            break;
    return last;
}

/* The first difference between this rank's programs of the case and the plain layer's; only of this
 * layer, unless it is ANY_LAYER. */
static bool differs_from_plain(Trial *t, int rank, int layer, ProgramDifference *difference)
{
    const RankCalls *mine = &t->outcome->calls->rank[rank];
    for (const Entry *entry = NULL; (entry = next_pass(t, entry, FORWARD_PASS_OF, layer));)
        if (program_difference(program_of_rank(mine, entry->label), program_of(entry), difference))
            return true;
    return false;
}

/* The programs of a forward pass, and of the backward pass of the same step and layer. */
static PassPrograms programs_of(Trial *t, const Entry *forward)
{
    const RankCalls *rank = t->outcome->calls->rank;
    const Members group = tp_group(t->c, t->rank);
    const Entry *back = NULL;
    do
        back = next_pass(t, back, BACKWARD_PASS_OF, layer_of(&forward->label));
    while (back && back->label.step != forward->label.step);
    PassPrograms p = {.plain = program_of(forward),
                      .plain_back = back ? program_of(back) : (OperationList){0},
                      .ranks = group.count,
                      .own = place_in(group, t->rank)};
    for (int k = 0; k < group.count; k++) {
        const RankCalls *one = &rank[group.first + k * group.stride];
        p.forward[k] = program_of_rank(one, forward->label);
        p.back[k] = back ? program_of_rank(one, back->label) : (OperationList){0};
    }
    return p;
}

/* The record names an operation, but not how it is wrong. */
static void add_what_numbers_show(const Evidence *e)
{
    static Finder *const finders[] = {rest_is_not_shared, right_on_first_rank,    partial_match,
                                      few_wrong,          same_numbers_elsewhere, nearly_right};
    Evidence rest = *e;
    const size_t used = strlen(e->text);
    rest.text += used + 1;
    rest.size -= used + 1;
    e->trial->explained_as = WITH_PATTERN;
    for (size_t i = 0; i < sizeof finders / sizeof *finders && used + 2 < e->size; i++)
        if (finders[i](&rest)) {
            e->text[used] = '\n';
            break;
        }
}

/* The results of a layer's operations come first, since gradients follow from them. The gradients of
 * its last pass come before those of the passes on which it depends. */
static bool find_wrong_value(const Evidence *e, bool later)
{
    enum { MOST_PASSES_OF_STEP = 64 };
    Trial *t = e->trial;
    const Label *l = &e->want->label;
    const Entry *passes[MOST_PASSES_OF_STEP];
    int count = 0;
    const bool right = all_outputs_right(e);
    Label returned = e->want->label;
    returned.what = FORWARD_PASS_OF;
    if (!has_programs(e) || l->step == DIVERGED)
        return false;
    for (const Entry *entry = NULL; (entry = next_pass(t, entry, FORWARD_PASS_OF, layer_of(l))) &&
                                    count < MOST_PASSES_OF_STEP;)
        if (entry->label.step == l->step || (l->step >= STEPS && entry->label.step == 0))
            passes[count++] = entry;
    if (count > 0 && e->want->check == FORWARD && !input_of(e) &&
        program_of_rank(&t->outcome->calls->rank[t->rank], passes[0]->label).count == 0)
        return !line_of_raw_look(t)[0] &&
               says(e, _("no operation on the tape computes it: here the lab returns without "
                         "computing anything"));
    for (int i = 0; i < (later ? count : 2 * count); i++) {
        PassPrograms p = programs_of(t, passes[i < count ? i : 2 * count - 1 - i]);
        p.first = i == 0 || l->of == A_LAYER || l->of == A_PARAMETER;
        p.has_loops = line_of_raw_look(t)[0];
        if (later && l->what == OUTPUT_OF && label_equal(&passes[i]->label, &returned))
            p.returned = constant_factor(e);
        p.input_gradient_is_wrong = l->what == INPUT_GRADIENT_OF && l->of == A_LAYER;
        p.parameter = l->what == GRADIENT_OF && l->of == A_PARAMETER ? l->name : NULL;
        bool is_open = false;
        if ((i < count ? !right || (later && p.has_loops) : right && e->want->check != FORWARD) &&
            first_wrong_value(&p, i >= count, &is_open, e->text, e->size)) {
            if (is_open && e->has_note)
                return false; /* the broken rule says what is wrong there */
            if (is_open)
                add_what_numbers_show(e);
            return true;
        }
    }
    return false;
}

bool value_is_wrong(const Evidence *e)
{
    return find_wrong_value(e, false);
}

/* The last operation's result is right, or a loop over raw numbers has mended one. */
bool result_was_changed(const Evidence *e)
{
    return find_wrong_value(e, true);
}

/* Nothing is exchanged on one rank. So if its results are right, its other program is an equivalent
 * one. */
void note_equivalent(Trial *t)
{
    const CheckResult *forward = &t->result->check[FORWARD];
    ProgramDifference difference;
    if (t->c->world == 1 && alike_on_ranks(t->c) && forward->looks && !forward->fails &&
        t->outcome->calls && !t->result->equivalent &&
        differs_from_plain(t, t->rank, ANY_LAYER, &difference))
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

/* The last operation of the rank in this step that gets no gradient, or NULL. */
static const TapeOperation *last_without_gradient(const Evidence *e)
{
    const Calls *calls = e->trial->outcome->calls;
    const RankCalls *mine = calls ? &calls->rank[e->trial->rank] : NULL;
    const TapeOperation *last = NULL;
    for (int64_t i = 0; mine && i < mine->operations_count; i++) {
        const TapeOperation *o = &mine->operation[i];
        const bool in_step =
            o->where.step == e->want->label.step &&
            (e->want->label.of != A_LAYER || o->where.index == e->want->label.index);
        if (in_step && !o->back && o->output.needs_gradient && o->where.what == FORWARD_PASS_OF)
            last = o;
        else if (in_step && o->back && last && o->output.tensor == last->output.tensor)
            return NULL;
    }
    return mine && mine->operations_count < RING_OPERATIONS ? last : NULL;
}

bool leaves_the_tape(const Evidence *e)
{
    const TapeOperation *last = last_without_gradient(e);
    return last &&
           says(e,
                _("no gradient flowed back to the result of %s at %s: what the lab makes of it is "
                  "not on the tape. A group_... or ..._forward function gives values only, and so "
                  "does tensor_copy()"),
                last->name, line_of(last->address));
}

/* Does this rank run another program or, if it does not, another one of its group? */
static bool differs_somewhere(const Evidence *e, int *rank, ProgramDifference *difference)
{
    const Members group = tp_group(e->c, e->trial->rank);
    const int layer = layer_of(&e->want->label);
    *rank = e->trial->rank;
    bool differs = differs_from_plain(e->trial, *rank, layer, difference);
    for (int k = 0; k < group.count && !differs; k++) {
        *rank = group.first + k * group.stride;
        differs = differs_from_plain(e->trial, *rank, layer, difference);
    }
    return differs;
}

/* If the forward pass is right, another program is an equivalent one, or a part of it is not on the
 * tape. An evaluation records nothing, but runs what a training pass runs. What an operation of the
 * lab's own computes, its numbers may say. In which cases it differs tells nothing if it is in most:
 * some results do not depend on it. */
bool program_is_another(const Evidence *e)
{
    Trial *t = e->trial;
    ProgramDifference difference;
    int rank;
    if (!has_programs(e) || all_outputs_right(e) || !differs_somewhere(e, &rank, &difference) ||
        (difference.address && difference.address == t->result->equivalent))
        return false;
    if (rank == t->rank)
        says(e, "%s", difference.text);
    else
        says(e, _("on rank %d, %s"), rank, difference.text);
    t->explained_as = IF_IN_FEW;
    return true;
}
