/* Which mistake of mistakes.h gives the rank's numbers? Also explains a wrong gradient after a right
 * forward pass. */
#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/work.h"

Expected *expected_with(Trial *t, int mistake)
{
    if (!t->suspected[mistake].all.base)
        t->suspected[mistake] = expect(t->c, t->rank, mistake, 0);
    return &t->suspected[mistake];
}

void forget_suspects(Trial *t)
{
    for (int i = 0; i < MISTAKES; i++)
        if (t->suspected[i].all.base)
            expected_free(&t->suspected[i]);
    memset(t->suspected, 0, sizeof t->suspected);
    if (t->program.all.base)
        expected_free(&t->program);
    t->program = (Expected){0};
}

/* How many of the rank's tensors equal those of the mistake. */
static int tensors_given(const Evidence *e, int mistake)
{
    const Trial *t = e->trial;
    int given = 0;
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));) {
        const Entry *wrong = find_entry(expected_with(e->trial, mistake)->all, VALUES, want->label),
                    *got = entry_of_rank(t, t->rank, VALUES, want->label);
        if (want->kind != VALUES || !wrong || !got || !has_numbers(got, wrong))
            continue;
        const Evidence one = {.got = got,
                              .is = numbers_of(got),
                              .count = got->count,
                              .tolerance = tolerance_of(&t->expected, want)};
        given += gives(&one, numbers_of(wrong));
    }
    return given;
}

/* Would the mistake also make a forward pass wrong that this rank has right? */
static bool denies_forward(const Evidence *e, int mistake)
{
    if (e->want->check == FORWARD || !alike_on_ranks(e->c))
        return false;
    for (const Entry *want = NULL; (want = next_entry(e->trial->expected.all, want));) {
        const Entry *wrong =
            want->kind == VALUES && want->check == FORWARD && want->label.what == OUTPUT_OF
                ? find_entry(expected_with(e->trial, mistake)->all, VALUES, want->label)
                : NULL;
        const double tolerance = wrong ? tolerance_of(&e->trial->expected, want) : 0;
        if (wrong && is_right_on_rank(e->trial, want) &&
            !close_to(numbers_of(wrong), numbers_of(want), 1, want->count, 4 * tolerance))
            return true;
    }
    return false;
}

static bool is_suspect(const Evidence *e, int mistake)
{
    if (!(suspects[mistake].families & kind_of_case(e->c)->mistakes))
        return false;
    const Entry *entry = find_entry(expected_with(e->trial, mistake)->all, VALUES, e->want->label);
    return entry && entry->count == e->want->count && gives(e, numbers_of(entry)) &&
           !gives(e, numbers_of(e->want));
}

/* The mistake that gives this tensor and explains the most tensors of the case, or NO_MISTAKE. Sets
 * `denied` if a mistake was rejected because it would make the forward pass wrong too. */
static int best_suspect(const Evidence *e, bool *denied)
{
    int best = NO_MISTAKE, most = -1;
    for (int s = 0; s < MISTAKES; s++) {
        if (!is_suspect(e, s))
            continue;
        const bool denies = denies_forward(e, s);
        const int given = denies ? -1 : tensors_given(e, s);
        *denied = *denied || denies;
        if (given > most) {
            best = s;
            most = given;
        }
    }
    return best;
}

bool all_outputs_right(const Evidence *e)
{
    int outputs = 0;
    for (const Entry *want = NULL; (want = next_entry(e->trial->expected.all, want));)
        if (want->kind == VALUES && want->check == FORWARD &&
            (want->label.what == OUTPUT_OF || want->label.what == VALUE_OF)) {
            outputs++;
            if (!is_right_on_rank(e->trial, want))
                return false;
        }
    return outputs > 0;
}

const char *line_of_raw_look(const Trial *t)
{
    for (const Entry *entry = NULL; (entry = next_entry(t->outcome->wrote[t->rank], entry));)
        if (entry->kind == WORK && entry->count == WORK_NUMBERS && numbers_of(entry)[RAW_LOOKS] > 0)
            return line_of(entry->address);
    return "";
}

static bool beside_the_tape(const Evidence *e)
{
    const char *line = line_of_raw_look(e->trial);
    if (e->trial->result->lab->backward_first)
        return says(e, _("the forward pass is right, but its gradient is not: recompute_backward "
                         "must run the segment on a leaf made from x, go backward from its result "
                         "with dy, and return the gradient of that leaf as it is"));
    return says(e,
                _("the forward pass is right, but its gradient is not: a part of that pass is not "
                  "on the tape (scale(), tensor_copy(), a loop over tensor_data()%s%s), or the "
                  "backward of an Op of your own is wrong"),
                line[0] ? _(", at ") : "", line);
}

/* In a case of one rank, is the gradient wrong although the forward pass is right? Nothing is
 * exchanged there, so if the lab keeps no variables, part of the forward pass is not on the
 * tape. */
bool not_on_tape(const Evidence *e)
{
    return !e->trial->result->variables[0] && e->want->check != FORWARD && e->want->check != STEP &&
           alike_on_ranks(e->c) && e->trial->result->lab->points[INPUT_GRADIENT] &&
           e->c->world == 1 && all_outputs_right(e) && beside_the_tape(e);
}

bool suspected(const Evidence *e)
{
    bool denied = false;
    /* If dropout keeps little, many mistakes give zeros. */
    if (e->beyond || (alike_on_ranks(e->c) && e->zeros == e->count))
        return false;
    const int s = best_suspect(e, &denied);
    if (s == NO_MISTAKE)
        return denied &&
               (step_of_wrong_gradient(e) || (all_outputs_right(e) && beside_the_tape(e)));
    return says(e, "%s", _(suspects[s].sentence));
}
