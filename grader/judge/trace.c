/* make trace, make tape: print the calls of one case, or the operations of one of its ranks, as
 * tables. */

#include <stdlib.h>

#include "base/clock.h"
#include "grader/judge/commands.h"
#include "grader/judge/diagnose/trial.h"
#include "grader/labs/stages.h"
#include "grader/judge/report/tape.h"
#include "grader/judge/report/verdict.h"

/* Is this case worth showing? A schedule of stages must be 1F1B on more than two of them,
 * with more micro-batches than stages. In a lab with a LAYOUT check, it must train several replicas and,
 * depending on the lab, have several stages or (for a page) split matrices. In other labs, several
 * ranks must split a layer, or more than two form a ring. */
static bool is_worth_a_look(const Case *c, bool drawn)
{
    if (lab_points(lab_of(c->lab), SCHEDULE) && lab_of(c->lab)->over_stages)
        return c->kind == BY_ONE_F_ONE_B && c->pp > 2 && c->micros > c->pp;
    if (lab_points(lab_of(c->lab), LAYOUT))
        return alike_on_ranks(c) && replicas_of(c) > 1 &&
               (lab_of(c->lab)->over_stages ? c->pp > 1 : c->tp > 1 || !drawn);
    return c->tp > (lab_points(lab_of(c->lab), SCHEDULE) ? 2 : 1); /* a ring of two shows little */
}

/* The first such case with the fewest ranks. */
static int case_to_show(const Case *cases, int count, bool drawn)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (is_worth_a_look(&cases[i], drawn) &&
            (!is_worth_a_look(&cases[best], drawn) || cases[i].world < cases[best].world))
            best = i;
    return best;
}

static const Case *choose(const Lab *lab, const Options *o, Case cases[MAX_CASES], int *index)
{
    int count = lab_cases(lab, o->seed, cases);
    *index = o->only_case >= 0 ? o->only_case : case_to_show(cases, count, o->picture);
    if (*index >= count)
        give_up_with(N_("omit CASE to choose a small one"), _("lab %d has cases 0 to %d"),
                     lab->number, count - 1);
    return &cases[*index];
}

static void say(const char *begin, const char *text)
{
    char line[3000];
    snprintf(line, sizeof line, "%s%s", begin, text);
    print_indented(stdout, page_of(stdout), line, "");
}

/* Prints a diagnosis, with each rank on its own line. */
static void print_reason(const char *diagnosis)
{
    char lines[2600], separator[64];
    size_t used = 0;
    const char *rank = _("rank %d ");
    snprintf(separator, sizeof separator, "%s%.*s", _("; "), (int)strcspn(rank, "%"), rank);
    for (const char *at = diagnosis; *at && used < sizeof lines - 1; at++) {
        bool next = !strncmp(at, separator, strlen(separator));
        lines[used++] = next ? '\n' : *at;
        at += next ? strlen(_("; ")) - 1 : 0;
    }
    lines[used] = '\0';
    say("", lines);
}

/* Prints why the case ended early; returns false if it ran to completion. */
static bool print_stop(const Case *c, const Outcome *outcome)
{
    char text[2048], line[2200];
    if (todo_text(c, outcome, text, sizeof text)) {
        snprintf(line, sizeof line, _("the case stops at %s; the rest of it was not run"), text);
        printf("\n");
        say("", line);
        return true;
    }
    const bool is_refused = refusal_text(c, outcome, text, sizeof text);
    if (is_refused)
        printf("\n%s\n", _("the case ended with an error:"));
    for (char *at = is_refused ? strtok(text, "\n") : NULL; at; at = strtok(NULL, "\n"))
        say("", at);
    if (outcome->ending != COMPLETE) {
        printf("\n%s\n", _("the case did not run to completion:"));
        print_reason(outcome->diagnosis);
    }
    return is_refused || outcome->ending != COMPLETE;
}

static void print_end(const Case *c, const Outcome *outcome)
{
    char text[2048];
    const Difference first = first_difference(outcome->calls, true, false);
    const bool stopped = print_stop(c, outcome);
    if (!stopped)
        printf("\n%s\n", _("the case ran to completion"));
    if (!stopped && difference_text(outcome->calls, &first, text, sizeof text))
        say(_("first difference: "), text);
    else if (!stopped)
        printf("%s", _("every call matched on the other ranks\n"));
    if ((!stopped || outcome->ending != COMPLETE) &&
        replicas_diverge(outcome->calls, c, false, text, sizeof text))
        say("", text);
}

const Case *case_to_look_at(const Options *o, Case cases[MAX_CASES], char *runner, size_t size)
{
    char text[160];
    int index;
    const Lab *lab = lab_of(o->lab);
    LabResult result = {.lab = lab};
    snprintf(runner, size, "%s/%02d-%s", o->runners, lab->number, o->author);
    lines_of(runner);
    if (has_no_runner(&result, runner)) {
        printf(_("Lab %d  %s"), lab->number, _(lab->title));
        printf("%s%s\n%s", _(": "), _(state_names[result.state]), result.remark);
        return NULL;
    }
    const Case *c = choose(lab, o, cases, &index);
    const int rank = o->rank;
    printf(_("Lab %d  %s"), lab->number, _(lab->title));
    printf(", SEED=%llu CASE=%d%s\n", (unsigned long long)o->seed, index, _(":"));
    print_indented(stdout, page_of(stdout), case_text(c, text), "  ");
    fflush(stdout);
    if (rank >= c->world)
        give_up_with(N_("RANK=0, or another CASE"), _("this case has ranks 0 to %d"), c->world - 1);
    printed_forget(runner);
    return c;
}

Runs *run_case_to_look_at(const Options *o, Case cases[MAX_CASES], const Case **c)
{
    char runner[512];
    *c = case_to_look_at(o, cases, runner, sizeof runner);
    return *c ? run_or_give_up(o, runner, *c, 1, lab_largest_world(lab_of(o->lab)),
                               clock_now() + lab_seconds(o->sandbox))
              : NULL;
}

int tape_lab(const Options *o)
{
    Case cases[MAX_CASES];
    const Case *c;
    Runs *runs = run_case_to_look_at(o, cases, &c);
    if (!runs)
        return 1;
    TapePass *pass = tape_pass(runs->outcome[0].calls, o->rank, lab_of(o->lab)->file);
    tape_print(stdout, page_of(stdout), pass);
    print_stop(c, &runs->outcome[0]);
    if (c->world > 1)
        printf(_("\nthis is rank %d; RANK=%d shows another\n"), o->rank, o->rank ? 0 : 1);
    free(pass);
    runs_free(runs);
    return 0;
}

int trace_lab(const Options *o)
{
    Case cases[MAX_CASES];
    const Case *c;
    Runs *runs = run_case_to_look_at(o, cases, &c);
    if (!runs)
        return 1;
    const Outcome *outcome = &runs->outcome[0];
    table_print(stdout, page_of(stdout), outcome, lab_of(o->lab)->file);
    print_end(c, outcome);
    schedule_print(stdout, c, outcome, o->cluster);
    runs_free(runs);
    return 0;
}
