/* What each check and each lab has earned, and why. */
#include "grader/judge/report/verdict.h"

#include <unistd.h>

#include "grader/judge/mpi/recorded.h"

const char *const status_names[STATUSES] = {
    N_("passed"),         N_("held back"), N_("wrong"),       N_("crash"), N_("hang"),
    N_("does not build"), N_("refused"),   N_("not started"), N_("to do"), N_("not run")};

const char *const state_names[LAB_STATES] = {N_("graded"), N_("not started"), N_("does not build"),
                                             N_("refused"), N_("not run")};

const char *why_numbers_are_held_back(const LabResult *lab)
{
    if (lab->serial && !lab->overlaps && !lab->one_case)
        return _("no two stages work at the same time yet: the micro-batches go through the "
                 "pipeline one after the other. The numbers earn their points once stages overlap");
    if (lab->unsharded)
        return _("the optimiser's state is not sharded yet: one replica holds all of it, or nearly "
                 "all, and takes the step alone. The numbers earn their points once optimizer_part "
                 "splits the weights");
    return lab->unsplit && !lab->split
               ? _("the work is not split yet: each rank does all of the layer's work, so these are the "
                   "numbers of the plain layer, which needs no exchange. They earn their points once "
                   "the work is split")
               : NULL;
}

/* Could a lab that sends nothing pass this check without work? A layer that splits weights also
 * splits its products before it sends anything, so its ARITHMETIC is not held back. */
static bool is_by_exchange(const LabResult *lab, Check check)
{
    return check == COMMUNICATION || check == SCHEDULE ||
           (check == ARITHMETIC && !lab->exchanges && !lab_points(lab->lab, SHARDING));
}

/* Without right gradients, a lab may simply keep nothing for the backward pass. */
static bool lacks_gradients(const LabResult *lab)
{
    const CheckResult *of_x = &lab->check[INPUT_GRADIENT],
                      *of_weights = &lab->check[WEIGHT_GRADIENT];
    return lab->lab->backward_first &&
           (of_x->failed || of_x->to_do || of_weights->failed || of_weights->to_do);
}

const char *why_held_back(const LabResult *lab, Check check)
{
    if (lacks_gradients(lab) && check != INPUT_GRADIENT && check != WEIGHT_GRADIENT)
        return check == FORWARD
                   ? _("the output is right without recomputation, too: this point is given once "
                       "the gradients are right")
                   : _("without right gradients, a lab may keep too little, or recompute too little: "
                       "these points are given once the gradients are right");
    if (lab->lab->kept && check == ARITHMETIC &&
        (lab->check[FORWARD].failed || lab->check[FORWARD].to_do))
        return _("without right results, a lab may keep too little: this point is given once the "
                 "results are right");
    const char *numbers = why_numbers_are_held_back(lab);
    if (numbers && (lab->serial || (check != SHARDING && check != ARITHMETIC)))
        return numbers;
    if (!lab->sends_too_little || !is_by_exchange(lab, check))
        return NULL;
    return !lab_points(lab->lab, INPUT_GRADIENT)
               ? _("in at least one function, the ranks exchange fewer numbers than they need: "
                   "these points are given once all of them are exchanged")
               : _("in at least one direction, forward or backward, the ranks exchange fewer "
                   "numbers than the split layer needs: these points are given once all of them "
                   "are exchanged");
}

Status check_status(const LabResult *lab, Check check)
{
    static const Status by_state[] = {[NOT_STARTED_YET] = NOT_BEGUN,
                                      [DOES_NOT_BUILD] = NOT_BUILT,
                                      [IS_REFUSED] = NOT_ALLOWED,
                                      [NOT_GRADED_YET] = NOT_JUDGED};
    const CheckResult *r = &lab->check[check];
    if (lab->state != GRADED)
        return by_state[lab->state];
    if (!r->failed && r->to_do)
        return UNDONE;
    if (!r->failed)
        return !r->looked_at ? NOT_JUDGED : why_held_back(lab, check) ? HELD_BACK : RIGHT;
    return r->ending == COMPLETE                                              ? WRONG
           : r->ending == HUNG || r->ending == LOOPED || r->ending == OVERDUE ? HANGS
                                                                              : CRASHES;
}

static bool is_reported(const LabResult *lab, int check)
{
    return lab->check[check].failed && lab_points(lab->lab, (Check)check);
}

/* The length in bytes of the number that begins here, unless it is a line number; else 0. */
static size_t number_at(const char *text, size_t i)
{
    return i > 0 && strchr(":0123456789", text[i - 1]) ? 0 : strspn(text + i, "0123456789");
}

/* Does the first line of a reason name a line of the lab? */
static bool names_a_line(const char *reason)
{
    size_t i = 0;
    while (reason[i] && reason[i] != '\n' &&
           !(reason[i] == ':' && strspn(reason + i + 1, "0123456789")))
        i++;
    return reason[i] == ':';
}

/* The length in bytes of the whole lines at the start of `a` with which `b` begins too. Two cases
 * of different sizes fail at the same line of the lab with other numbers: where a reason names the
 * line, all numbers except line numbers may differ, and in a shape they always may. A last line may
 * end with sizes, which `b` tells further below. */
static size_t common_lines(const char *a, const char *b)
{
    const bool numbers_differ = names_a_line(a);
    size_t common = 0, i = 0, k = 0;
    while (a[i]) {
        const bool may_differ = numbers_differ || (i > 0 && strchr("[,", a[i - 1]));
        const size_t of_a = may_differ ? number_at(a, i) : 0, of_b = number_at(b, k);
        if (!(of_a && of_b) && a[i] != b[k])
            break;
        if (a[i] == '\n')
            common = i + 1;
        i += of_a && of_b ? of_a : 1;
        k += of_a && of_b ? of_b : 1;
    }
    const bool has_sizes = !strncmp(a + i, " (", 2) && b[k] == '\n' && !strchr(a + i, '\n');
    return has_sizes ? strlen(a) : !strcmp(a, b) ? i : common;
}

/* The length in bytes of the lines that the reasons of two checks share at the start: all of them
 * if a case was not run because another one hangs. */
static size_t told_in_common(const LabResult *lab, int check, int first)
{
    const CheckResult *r = &lab->check[check];
    return r->ending == NOT_RUN && check_status(lab, (Check)first) == HANGS
               ? strlen(r->reason)
               : common_lines(r->reason, lab->check[first].reason);
}

static bool is_prefix(const char *start, const char *text)
{
    return !strncmp(text, start, strlen(start));
}

/* Does `b` have a line of `a` together with the HINT below it? Of cases that ended early, the lines
 * above say more. */
static bool has_same_hint(const CheckResult *check, const CheckResult *first)
{
    const char *a = check->reason, *b = first->reason;
    char both[sizeof((CheckResult *)NULL)->reason];
    for (const char *end; check->ending == COMPLETE && (end = strchr(a, '\n')); a = end + 1) {
        if (!is_prefix(_("HINT: "), end + 1))
            continue;
        snprintf(both, sizeof both, "%.*s", (int)(end + 1 - a + strcspn(end + 1, "\n")), a);
        if (strstr(b, both))
            return true;
    }
    return false;
}

Check cause_of(const LabResult *lab, Check check)
{
    if (is_reported(lab, WEIGHT_GRADIENT) &&
        is_prefix(_(follows_gradient), lab->check[check].reason))
        return cause_of(lab, WEIGHT_GRADIENT);
    for (int other = (int)check + 1; other < CHECKS && lab->check[check].ending == NOT_RUN; other++)
        if (is_reported(lab, other) && check_status(lab, (Check)other) == HANGS)
            return cause_of(lab, (Check)other);
    for (int first = 0; first < (int)check; first++)
        if (is_reported(lab, first) && (told_in_common(lab, (int)check, first) > 0 ||
                                        has_same_hint(&lab->check[check], &lab->check[first])))
            return cause_of(lab, (Check)first);
    return check;
}

const char *own_reason(const LabResult *lab, Check check)
{
    const Check first = cause_of(lab, check);
    const char *reason = lab->check[check].reason;
    return first == check ? reason : reason + told_in_common(lab, (int)check, (int)first);
}

int check_score(const LabResult *lab, Check check)
{
    return check_status(lab, check) == RIGHT ? lab_points(lab->lab, check) : 0;
}

/* All checks of a lab that does not build fail with the same messages. Only the first one shows
 * them. */
static void refer_to(const LabResult *lab, Check first, char *text, size_t size)
{
    snprintf(text, size, _("%s: see the check '%s'"), _(state_names[lab->state]),
             check_names[first]);
}

void check_reason(const LabResult *lab, Check check, char *text, size_t size)
{
    Status status = check_status(lab, check);
    const CheckResult *r = &lab->check[check];
    const int first = next_check(lab, -1);
    if ((status == NOT_BUILT || status == NOT_ALLOWED) && (int)check != first)
        refer_to(lab, (Check)first, text, size);
    else if (status == NOT_BUILT || status == NOT_ALLOWED || status == NOT_BEGUN ||
             status == UNDONE)
        snprintf(text, size, "%s%s%s", _(status_names[status]), _(": "), lab->remark);
    else
        snprintf(text, size, "%s",
                 status == RIGHT        ? r->note
                 : status == HELD_BACK  ? why_held_back(lab, check)
                 : status != NOT_JUDGED ? r->reason
                 : lab->state == GRADED ? _("no case checked it")
                                        : _("not reached by the grader"));
}

/* A handout has no solutions: there, labs build on the student's own ones unless told otherwise. */
static bool must_ask_for_own_labs(const Verdict *verdict)
{
    return !strcmp(verdict->author, "mine") && access("solutions", F_OK) == 0;
}

void repeat_check(const Verdict *verdict, const LabResult *lab, Check check, const char *command,
                  char text[160])
{
    const CheckResult *r = &lab->check[check];
    snprintf(text, 160, "make %s LAB=%d SEED=%llu%s%s%s", command, lab->lab->number,
             (unsigned long long)verdict->seed,
             !strcmp(verdict->author, "solution") ? " SOLUTION=1"
             : must_ask_for_own_labs(verdict)     ? " STACK=mine"
                                                  : "",
             verdict->sandbox->sanitized && strcmp(command, "trace") ? " SAN=1" : "",
             verdict->sandbox->gpu ? " BACKEND=cuda" : "");
    if (r->failed && (!r->repeated || r->alone))
        append(text, 160, " CASE=%d%s", r->case_index,
               lab->kit_cases && r->case_index >= lab->kit_cases
                   ? _(" # a case of your instructor's")
                   : "");
}

int next_check(const LabResult *lab, int check)
{
    while (++check < CHECKS)
        if (lab_points(lab->lab, (Check)check))
            return check;
    return -1;
}

int verdict_points(const Verdict *verdict)
{
    int points = 0;
    for (int i = 0; i < verdict->count; i++)
        points += verdict->labs[i].points;
    return points;
}

int verdict_of(const Verdict *verdict)
{
    int of = 0;
    for (int i = 0; i < verdict->count; i++)
        of += verdict->labs[i].of;
    return of;
}

bool verdict_is_full(const Verdict *verdict)
{
    for (int i = 0; i < verdict->count; i++)
        if (verdict->labs[i].points < verdict->labs[i].of)
            return false;
    return true;
}

bool verdict_is_complete(const Verdict *verdict)
{
    for (int i = 0; i < verdict->count; i++)
        if (verdict->labs[i].state == NOT_GRADED_YET)
            return false;
    return true;
}

void tell_isolation(const Verdict *verdict, char text[ISOLATION_SIZE])
{
    const Sandbox *sandbox = verdict->sandbox;
    if (sandbox->missing[0])
        snprintf(text, ISOLATION_SIZE,
                 _("no sandbox here (%s): the ranks ran with resource limits only"),
                 sandbox->missing);
    else
        snprintf(text, ISOLATION_SIZE, "%s",
                 sandbox->used ? _("the ranks ran in a sandbox") : _("no ranks were run"));
}

void clean_result(LabResult *result)
{
    clean_text(result->remark);
    for (int check = 0; check < CHECKS; check++)
        clean_text(result->check[check].reason);
}
