/* make measure: counts the number that a student predicts, in one case of a lab. */
#include "base/clock.h"
#include "grader/judge/commands.h"
#include "grader/judge/report/verdict.h"

static _Noreturn void cannot_measure(const Lab *lab, const char *why)
{
    char hint[120];
    snprintf(hint, sizeof hint, _("make grade LAB=%d says what is missing"), lab->number);
    give_up_with(hint, _("lab %d cannot be measured: %s"), lab->number, why);
}

static bool is_right(const LabResult *result, const Outcome *outcome)
{
    bool right = outcome->ending == COMPLETE;
    for (int check = 0; check < CHECKS; check++) {
        Status status = check_status(result, (Check)check);
        if (lab_points(result->lab, (Check)check))
            right = right && (status == RIGHT || status == NOT_JUDGED);
    }
    return right;
}

static double counted(const Case *c, const Outcome *outcome, CountFunction *count)
{
    double sum = 0;
    for (int rank = 0; rank < c->world; rank++)
        for (const Entry *entry = NULL; (entry = next_entry(outcome->wrote[rank], entry));)
            sum += count(rank, entry, numbers_of(entry));
    return sum;
}

int measure_lab(const Options *o)
{
    static LabResult result;
    char runner[512];
    const Lab *lab = lab_of(o->lab);
    const Case *at = &lab->predict.at;
    if (!lab->predict.question)
        give_up_with(
            N_("a lab that has one asks for it in its text, in the box \"Predict, then measure\""),
            _("lab %d has no number to predict"), lab->number);
    snprintf(runner, sizeof runner, "%s/%02d-%s", o->runners, lab->number, o->author);
    lines_of(runner);
    result = (LabResult){.lab = lab, .state = GRADED};
    if (is_untouched(&result, o) || has_no_runner(&result, runner))
        cannot_measure(lab, _(state_names[result.state]));
    Case c = lab_case_with(lab, o->seed, 0, at->world, at->tp, at);
    c.kind = at->kind;
    c.pp = at->pp ? at->pp : c.pp;
    printed_forget(runner);
    Runs *runs = run_or_give_up(o, runner, &c, 1, c.world, clock_now() + lab_seconds(o->sandbox));
    judge_case(&result, &c, 0, &runs->outcome[0]);
    if (!is_right(&result, &runs->outcome[0]))
        cannot_measure(lab, _("it does not pass its checks yet"));
    printf("%.15g\n", counted(&c, &runs->outcome[0], lab->predict.count));
    runs_free(runs);
    return 0;
}
