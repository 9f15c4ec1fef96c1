/* Judges one case: each entry that a rank must have written, and how the case ended. */
#include <stdarg.h>

#include "grader/judge/diagnose/evidence.h"

void fail(Trial *t, Check check, Cause cause, const char *format, ...)
{
    va_list args;
    CheckResult *r = &t->result->check[check];
    r->fails = r->fails || !t->with_nan;
    if (r->failed && (t->with_nan || (!r->with_nan && (r->explained || cause == UNEXPLAINED))))
        return;
    r->with_nan = t->with_nan;
    va_start(args, format);
    vsnprintf(r->reason, sizeof r->reason, format, args);
    va_end(args);
    r->failed = true;
    r->explained = cause != UNEXPLAINED;
    r->may_have_pattern = cause == WITH_PATTERN || cause == IF_IN_FEW;
    r->if_in_few = cause == IF_IN_FEW;
    r->case_index = t->index;
    r->ending = cause == BY_ENDING ? t->outcome->ending : COMPLETE;
    r->in_calls = cause == BY_ENDING || cause == IN_CALLS;
    r->repeated = r->alone = false;
}

const char *case_text(const Case *c, char text[160])
{
    enum { SIZE = 160 };
    const Lab *lab = lab_of(c->lab);
    const char *name = lab->kinds[c->kind].name;
    text[0] = '\0';
    if (name)
        append(text, SIZE, "%s, ", _(name));
    append(text, SIZE, c->world > 1 ? _("%d ranks") : _("%d rank"), c->world);
    if (lab->has_replicas)
        append(text, SIZE, ", tp=%d%s", c->tp,
               c->apart ? _(", the ranks of a group are not neighbours") : "");
    if (c->pp > 1)
        append(text, SIZE, ", pp=%d", c->pp);
    for (int i = 0; i < CASE_SIZES; i++) {
        const int value = case_size(c, i);
        if (value)
            append(text, SIZE, "%s%s=%d", i ? " " : ", ", case_size_name(lab, i), value);
        if (value && i == 0 && c->more_B)
            append(text, SIZE, _(" (then %d)"), c->B + c->more_B);
    }
    if (lab->sizes & SIZE_P)
        append(text, SIZE, " dropout=%g", c->training ? c->p : 0.0);
    return text;
}

const Entry *entry_of_rank(const Trial *t, int rank, int kind, Label label)
{
    return find_entry(t->outcome->wrote[rank], kind, label);
}

const char *entry_text(const Entry *entry)
{
    static char text[LABEL_SIZE + 40];
    label_text(&entry->label, text);
    if (entry->label.step == DIVERGED)
        append(text, sizeof text, "%s", _(" (with NaN)"));
    return text;
}

bool ranks_have_finished(const Trial *t)
{
    bool finished = true;
    for (int rank = 0; rank < t->c->world; rank++)
        finished = finished && entry_of_rank(t, rank, FINISHED, (Label){0});
    return finished;
}

bool may_lack(const Trial *t, const Entry *want)
{
    const Examination *own = &lab_of(t->c->lab)->examine;
    return own->may_lack && own->may_lack(t, want);
}

/* Did the case end in its first step, after that step had written such an entry? Then the entry
 * does not fail: after a crash in the backward pass, the forward pass keeps its points, although
 * its second run and its evaluations were not reached. */
static bool was_shown_in_step_1(Trial *t, const Entry *want)
{
    Entry first = *want;
    if (first.label.of != A_LAYER && first.label.of != A_PARAMETER &&
        first.label.of != OF_VOCABULARY && first.label.of != THE_MODEL &&
        first.label.of != A_SEGMENT && first.label.of != A_SEQUENCE)
        return false;
    if (first.label.step == 0)
        t->broken_in_step_1 = true;
    first.label.step = 0;
    return t->broken_in_step_1 &&
           (entry_of_rank(t, t->rank, first.kind, first.label) || may_lack(t, &first));
}

static void fail_missing(Trial *t, const Entry *want)
{
    char why[2600];
    if (was_shown_in_step_1(t, want))
        return;
    if (t->todo) {
        t->result->check[want->check].to_do = true;
        if (want->kind == PARAMETER)
            t->result->check[INITIAL_VALUES].to_do = true;
        return;
    }
    if (t->result->lab->examine.lacks && t->result->lab->examine.lacks(t, want))
        return;
    if (want->kind == PARAMETER && entry_of_rank(t, t->rank, FINISHED, (Label){0})) {
        parameter_missing(t, want);
        return;
    }
    if (renamed_parameter(t, why, sizeof why)) { /* its gradient and value are renamed too */
        fail(t, (Check)want->check, EXPLAINED, _("%.600s\nmissing: %s on rank %d (%s)"), why,
             entry_text(want), t->rank, t->sizes);
        return;
    }
    ending_text(t, why, sizeof why);
    for (int check = 0; check < CHECKS; check++)
        if (check == want->check || (check == INITIAL_VALUES && want->kind == PARAMETER))
            fail(t, (Check)check, BY_ENDING, _("%.2600s\nnot reached: %s on rank %d (%s)"), why,
                 entry_text(want), t->rank, t->sizes);
}

int layer_of(const Label *label)
{
    return label->of == A_LAYER ? label->index
           : label->of == OF_VOCABULARY
               ? label->detail
               : !strncmp(label->name, layer_names[1], strlen(layer_names[1]));
}

/* The two tables of a case have different numbers of rows. */
static void name_sizes(Trial *t, int layer)
{
    Case c = *t->c;
    c.V = table_rows_of(t->c, layer);
    case_text(&c, t->sizes);
}

static void compare_expected(Trial *t)
{
    const Examination *own = &t->result->lab->examine;
    for (const Entry *want = NULL; (want = next_entry(t->expected.all, want));) {
        const Entry *got = entry_of_rank(t, t->rank, want->kind, want->label);
        name_sizes(t, layer_of(&want->label));
        t->with_nan = want->label.step == DIVERGED;
        CheckResult *r = &t->result->check[want->check],
                    *also = want->kind == PARAMETER ? &t->result->check[INITIAL_VALUES] : r;
        r->looked_at = r->looks = also->looked_at = also->looks = true;
        r->compared |= got && (want->kind == PARAMETER || want->kind == VALUES);
        if (!got && may_lack(t, want))
            continue;
        if (!got)
            fail_missing(t, want);
        else if (want->kind == PARAMETER)
            compare_parameter(t, got, want);
        else if (want->kind == TRAFFIC && t->rank == 0)
            compare_traffic(t, want);
        else if (want->kind == WORK && t->rank == 0)
            compare_work(t, want);
        else if (want->kind == VALUES)
            compare_values(t, got, want);
        if (got && own->entry)
            own->entry(t, got, want);
    }
    t->with_nan = false;
    name_sizes(t, 0);
}

/* The first entry of this kind, by rank, or NULL. */
static const Entry *first_on_ranks(const Case *c, const Outcome *outcome, int kind)
{
    const Entry *found = NULL;
    for (int rank = 0; rank < c->world && !found; rank++)
        found = first_entry(outcome->wrote[rank], kind);
    return found;
}

bool todo_text(const Case *c, const Outcome *outcome, char *text, size_t size)
{
    const Entry *todo = first_on_ranks(c, outcome, NOT_STARTED);
    if (!todo || outcome->ending == CRASHED || outcome->ending == LOOPED ||
        outcome->ending == OVERDUE)
        return false;
    const char *line = line_of(todo->address);
    snprintf(text, size, _("TODO(%d) in %.63s%s%s"), todo->check, todo->label.name,
             line[0] ? ", " : "", line);
    return true;
}

/* If a TODO ended the case, notes that. Checks that need nothing after it are judged; the others
 * are marked as to do. */
static void look_for_todo(Trial *t)
{
    LabResult *result = t->result;
    char text[160];
    t->todo = todo_text(t->c, t->outcome, text, sizeof text);
    if (t->todo && !result->remark[0])
        strcpy(result->remark, text);
    if (t->todo && result->untouched)
        result->state = NOT_STARTED_YET;
}

static bool has_failed(const LabResult *result)
{
    for (int check = 0; check < CHECKS; check++)
        if (result->check[check].failed)
            return true;
    return false;
}

bool has_refused(const Trial *t)
{
    return first_on_ranks(t->c, t->outcome, REFUSED);
}

/* Fails a check if the kit or a sanitizer reported an error after the last numbers. */
static void fail_refused(Trial *t)
{
    char why[2600];
    Check check = lab_check(t->result->lab, FORWARD);
    if (t->result->state != GRADED || has_failed(t->result) || !has_refused(t))
        return;
    ending_text(t, why, sizeof why);
    fail(t, check, BY_ENDING, _("%.2600s\nall results are complete (%s)"), why, t->sizes);
}

/* Fails a check if every number was written but the case did not end, because replicas made
 * different numbers of calls, and one waits for another. */
static void fail_unfinished(Trial *t)
{
    char why[2600];
    if (t->result->state != GRADED || t->outcome->ending == COMPLETE || replicas_of(t->c) == 1 ||
        t->todo || has_failed(t->result) || ranks_have_finished(t))
        return;
    ending_text(t, why, sizeof why);
    fail(t, lab_check(t->result->lab, COMMUNICATION), BY_ENDING,
         _("%s%.2600s\nall results are complete, but the case does not end (%s)"),
         !t->result->lab->over_replicas && !t->result->lab->over_stages
             ? _("one replica waits for another although they have nothing to exchange here: ")
             : "",
         why, t->sizes);
}

/* Does a failure of this check mean wrong numbers? Only wrong numbers show that an exchange is
 * missing. A schedule does not depend on numbers, and a rank that keeps more may exchange less. */
static bool is_of_numbers(const Trial *t, int check)
{
    const Lab *lab = t->result->lab;
    return lab_points(lab, SCHEDULE)
               ? check <= RING_GATHER
               : check != COMMUNICATION && !(lab->kept && check == ARITHMETIC);
}

static void end_checks(Trial *t)
{
    for (int check = 0; check < CHECKS; check++) {
        CheckResult *r = &t->result->check[check];
        t->result->sends_too_little |= t->sends_too_little && is_of_numbers(t, check) && r->fails;
        if (r->looks || r->fails)
            pattern_add(&r->pattern, t->c, r->fails);
        r->looks = r->fails = false;
    }
}

/* The tolerance follows from the largest error of several single-precision runs. If a result or a
 * weight's gradient has few numbers, more runs are needed to find an error that is large enough.
 * Together with the exact run, both cores get the same number of runs. */
int emulations_of(const Case *c)
{
    enum { FEW_NUMBERS = 1024, RUNS = 11, FEWER_RUNS = 5 };
    unsigned sizes = lab_of(c->lab)->sizes;
    int64_t passing = (int64_t)c->B * c->S * c->H, weight = sizes & SIZE_F     ? c->H * c->F
                                                            : sizes & SIZE_OUT ? c->H * c->out
                                                                               : passing;
    return passing < FEW_NUMBERS || weight < FEW_NUMBERS ? RUNS : FEWER_RUNS;
}

Expected *computed(Trial *t, Expected *kept, Expectation what)
{
    if (!kept->all.base)
        *kept = expect(t->c, t->rank, what, 0);
    return kept;
}

void forget_expected(Trial *t)
{
    Expected *const kept[] = {&t->program, &t->past};
    for (int i = 0; i < 2; i++) {
        if (kept[i]->all.base)
            expected_free(kept[i]);
        *kept[i] = (Expected){0};
    }
}

void judge_case(LabResult *result, const Case *c, int case_index, const Outcome *outcome)
{
    Trial t = {.result = result, .c = c, .index = case_index, .outcome = outcome};
    name_sizes(&t, 0);
    look_for_todo(&t);
    compare_calls(&t);
    compare_overlap(&t);
    for (t.rank = 0; t.rank < c->world && result->state == GRADED; t.rank++) {
        if (t.rank == 0 || !alike_on_ranks(c)) { /* all ranks of a layer must write the same */
            if (t.rank > 0)
                expected_free(&t.expected);
            forget_expected(&t);
            t.expected = expect(c, t.rank, THE_NUMBERS, emulations_of(c));
        }
        t.broken_in_step_1 = false;
        if (t.rank == 0 && result->lab->examine.the_case)
            result->lab->examine.the_case(&t);
        look_for_more(&t); /* first, because a request without a wait explains wrong numbers */
        compare_expected(&t);
        note_equivalent(&t);
    }
    fail_unfinished(&t);
    fail_refused(&t);
    look_at_split(&t);
    end_checks(&t);
    forget_expected(&t);
    if (t.expected.all.base)
        expected_free(&t.expected);
}
