/* Grades one lab. */
#include "grader/judge/grade.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "grader/judge/mpi/recorded.h"
#include "grader/judge/report/verdict.h"

/* If there is no runner, make has left the reason in a file: messages of the compiler or the
 * linker, the refusal of compile-lab.sh, or the labs that this one waits for. */
bool has_no_runner(LabResult *result, const char *runner)
{
    char path[600];
    snprintf(path, sizeof path, "%s.failed", runner);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t length = fread(result->remark, 1, sizeof result->remark - 1, file);
    result->remark[length] = '\0';
    fclose(file);
    static const struct {
        const char *prefix;
        LabState state;
    } kinds[] = {{"refused: ", IS_REFUSED}, {"waits: ", NOT_GRADED_YET}, {"", DOES_NOT_BUILD}};
    for (int i = 0;; i++) {
        size_t prefix = strlen(kinds[i].prefix);
        if (strncmp(result->remark, kinds[i].prefix, prefix))
            continue;
        result->state = kinds[i].state;
        memmove(result->remark, result->remark + prefix, length - prefix + 1);
        return true;
    }
}

static Runs *prepare(const Options *o, const char *runner, const Case *cases, int count, int ranks,
                     double until)
{
    return runs_prepare(runner, ranks, cases, count, o->cpu_limit, until, o->sandbox);
}

static void launch_or_give_up(Runs *runs)
{
    Problem problem;
    if (!run_cases(runs, &problem)) {
        runs_free(runs);
        give_up(&problem);
    }
}

/* Runs cases. Returns false if the lab is refused because it keeps its runner from starting. */
static bool launch_or_refuse(LabResult *result, Runs *runs)
{
    Problem problem;
    if (run_cases(runs, &problem))
        return true;
    if (!runs->unfit) {
        runs_free(runs);
        give_up(&problem);
    }
    result->state = IS_REFUSED;
    snprintf(result->remark, sizeof result->remark, "%s\n%s%s", problem.what, _("  HINT: "),
             problem.hint);
    return false;
}

Runs *run_or_give_up(const Options *o, const char *runner, const Case *cases, int count, int ranks,
                     double until)
{
    Runs *runs = prepare(o, runner, cases, count, ranks, until);
    while (runs->next < count)
        launch_or_give_up(runs);
    return runs;
}

static void end_runs(Runs *runs, Times *times)
{
    times->launch += runs->times.launch;
    times->running += runs->times.running;
    runs_free(runs);
}

/* Cases that run together; the first is case `first` of the lab. */
typedef struct Batch {
    Case cases[MAX_CASES];
    int first, count;
} Batch;

/* Explains why the failure does not recur when the case runs alone. This comes first, because what
 * wrong numbers look like, or where the ranks wait, is not the cause then. */
static void explain_why_not_alone(CheckResult *r, const LabResult *result)
{
    char kept[240], reason[sizeof r->reason];
    strcpy(reason, r->reason);
    snprintf(kept, sizeof kept,
             result->variables[0] ? _("what %s kept from an earlier case") : "%s",
             result->variables[0] ? result->variables : _("something kept from an earlier case"));
    snprintf(
        r->reason, sizeof r->reason,
        _("In this check, the case passes when run alone: the result depends on %s (each case has its own "
          "groups), or on which rank or message comes first (MPI_ANY_SOURCE, a buffer used "
          "before its wait), or memory is corrupted (make grade LAB=%d SAN=1 checks that)\n"),
        kept, result->lab->number);
    append(r->reason, sizeof r->reason, "%s", reason);
}

/* Runs the case of a failed check alone. If the check passes there, the case by itself is not the
 * cause: the lab may keep something between cases. */
static void repeat_alone(LabResult *result, const Options *o, const char *runner,
                         const Batch *batch, Check check, double until)
{
    static LabResult alone;
    CheckResult *failed = &result->check[check];
    const Case *c = &batch->cases[failed->case_index - batch->first];
    alone = (LabResult){.lab = result->lab};
    Runs *runs = run_or_give_up(o, runner, c, 1, c->world, until);
    judge_case(&alone, c, failed->case_index, &runs->outcome[0]);
    end_runs(runs, &result->times);
    bool told = false;
    for (int other = (int)check; other < CHECKS; other++) {
        CheckResult *same = &result->check[other];
        if (!same->failed || same->case_index != failed->case_index || same->repeated)
            continue;
        same->repeated = true;
        same->alone = alone.check[other].failed;
        if (same->alone || (told && same->in_calls)) /* once per cause */
            continue;
        explain_why_not_alone(same, result);
        told = true;
    }
}

/* The cases of the run's seed and the instructor's shapes, or those of one of the instructor's
 * seeds. */
static void fill_batch(Batch *batch, const Lab *lab, const Options *o, int number)
{
    batch->first += batch->count;
    if (number > 0) {
        batch->count = lab_cases(lab, o->local.seeds[number - 1], batch->cases);
    } else {
        batch->count = lab_cases(lab, o->seed, batch->cases);
        batch->count = local_cases(&o->local, lab, o->seed, batch->cases, batch->count);
    }
}

/* Selects one case of the batch, if one was requested; false if it is in another batch. */
static bool choose_case(Batch *batch, int only)
{
    if (only < 0)
        return true;
    int at = only - batch->first;
    if (at < 0 || at >= batch->count)
        return false;
    batch->cases[0] = batch->cases[at];
    batch->first = only;
    batch->count = 1;
    return true;
}

/* Can no further case change the verdict? True once a cause is known for the failure of each check
 * with points. */
static bool is_decided(const LabResult *result)
{
    for (int check = -1; (check = next_check(result, check)) >= 0;)
        if (!result->check[check].failed || !result->check[check].explained)
            return false;
    return lab_worth(result->lab) > 0;
}

static void judge_batch(LabResult *result, const Options *o, const char *runner, const Batch *batch)
{
    enum { CPU_SECONDS = 15 }; /* of the judge; valid records take about one */
    const int ranks = batch->count == 1 ? batch->cases->world : lab_largest_world(result->lab);
    const double until = clock_now() + lab_seconds(o->sandbox);
    Runs *runs = prepare(o, runner, batch->cases, batch->count, ranks, until);
    clock_t judging = 0;
    for (int i = 0; i < batch->count && result->state == GRADED && !is_decided(result);) {
        if (!launch_or_refuse(result, runs))
            break;
        result->cut_short = runs->cut_short;
        const clock_t begin = clock() - judging;
        for (; i < runs->next && result->state == GRADED; i++) {
            if (clock() - begin > (clock_t)CPU_SECONDS * CLOCKS_PER_SEC)
                outcome_forget(&runs->outcome[i]);
            judge_case(result, &batch->cases[i], batch->first + i, &runs->outcome[i]);
        }
        judging = clock() - begin;
    }
    for (int i = 0; i < batch->count; i++)
        result->not_run += runs->outcome[i].ending == NOT_RUN;
    for (int check = 0; check < CHECKS && result->state == GRADED && o->only_case < 0; check++) {
        const CheckResult *r = &result->check[check];
        if (r->failed && !r->repeated && r->case_index >= batch->first &&
            result->cut_short == COMPLETE && clock_now() < until)
            repeat_alone(result, o, runner, batch, (Check)check, until);
    }
    end_runs(runs, &result->times);
    result->cases += batch->count;
}

static void judge_lab(LabResult *result, const Options *o, const char *runner)
{
    Batch *batch = calloc(1, sizeof *batch);
    result->kit_cases = lab_cases(result->lab, o->seed, batch->cases);
    for (int i = 0;
         i <= o->local.seed_count && result->state == GRADED && result->cut_short == COMPLETE;
         i++) {
        fill_batch(batch, result->lab, o, i);
        int next = batch->first + batch->count;
        if (choose_case(batch, o->only_case))
            judge_batch(result, o, runner, batch);
        batch->first = next;
        batch->count = 0;
    }
    free(batch);
}

void must_have_case(const Lab *lab, const Options *o)
{
    Batch *batch = calloc(1, sizeof *batch);
    for (int i = 0; i <= o->local.seed_count; i++)
        fill_batch(batch, lab, o, i);
    if (o->only_case >= batch->first + batch->count)
        give_up_with(N_("omit CASE to run them all"), _("lab %d has cases 0 to %d"), lab->number,
                     batch->first + batch->count - 1);
    free(batch);
}

int lab_worth(const Lab *lab)
{
    int worth = 0;
    for (int check = 0; check < CHECKS; check++)
        worth += lab_points(lab, (Check)check);
    return worth;
}

/* If the numbers reveal no cause, or one that may depend on the case, a pattern may separate failing
 * from passing cases. It follows the first line of the reason, so that checks that fail alike share that
 * line. */
static void tell_patterns(LabResult *result)
{
    char line[800], rest[sizeof result->check->reason];
    for (int check = 0; check < CHECKS; check++) {
        CheckResult *r = &result->check[check];
        const bool in_most = 2 * r->pattern.failed > r->pattern.failed + r->pattern.passed;
        if (!r->failed || (r->explained && (!r->may_have_pattern || result->not_run > 0)) ||
            (r->if_in_few && in_most) ||
            !pattern_text(&r->pattern, !r->if_in_few, line, sizeof line))
            continue;
        const size_t first = strcspn(r->reason, "\n");
        snprintf(rest, sizeof rest, "%s", r->reason + first);
        snprintf(r->reason + first, sizeof r->reason - first, "\n%s%s", line, rest);
    }
}

/* Appends the lab's static and file-scope variables to the first reason. */
static void tell_variables(LabResult *result)
{
    int check = 0;
    while (check < CHECKS && !(result->check[check].failed && result->check[check].reason[0]))
        check++;
    if (check == CHECKS || !result->variables[0])
        return;
    append(result->check[check].reason, sizeof result->check->reason,
           result->lab->has_replicas || result->lab->over_stages
               ? _("\nstatic or file-scope variables keep their values from call to call: %s")
               : _("\nstatic or file-scope variables keep their values from call to call, and all "
                   "layers share them: %s"),
           result->variables);
}

/* A single case does not cover all checks. The checks that it leaves out neither earn nor lose
 * points. */
static int worth_looked_at(const LabResult *result)
{
    int worth = 0;
    for (int check = 0; check < CHECKS; check++)
        worth += check_status(result, (Check)check) == NOT_JUDGED
                     ? 0
                     : lab_points(result->lab, (Check)check);
    return worth;
}

/* Reads the names of the lab's static and file-scope variables, which link-runner.sh has written
 * beside the runner. */
static void read_variables(LabResult *result, const char *runner)
{
    char path[600], name[64];
    snprintf(path, sizeof path, "%s.variables", runner);
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    while (fscanf(file, "%63s", name) == 1)
        append(result->variables, sizeof result->variables, "%s`%s`",
               result->variables[0] ? ", " : "", name);
    fclose(file);
}

void grade_lab(LabResult *result, const Options *o)
{
    enum { LINES_SHOWN = 60 }; /* of the ranks' output, if the student runs a single case */
    char runner[512];
    double begin = clock_now();
    snprintf(runner, sizeof runner, "%s/%02d-%s", o->runners, result->lab->number, o->author);
    lines_of(runner);
    result->of = lab_worth(result->lab);
    result->one_case = o->only_case >= 0;
    read_variables(result, runner);
    printed_forget(runner);
    if (!is_untouched(result, o) && !has_no_runner(result, runner))
        judge_lab(result, o, runner);
    look_for_handed_out(result, o);
    printed_tell(result, runner, o->only_case >= 0 ? LINES_SHOWN : 0, !o->short_lived);
    tell_patterns(result);
    tell_variables(result);
    clean_result(result);
    if (result->one_case && result->state == GRADED)
        result->of = worth_looked_at(result);
    for (int check = 0; check < CHECKS; check++)
        result->points += check_score(result, (Check)check);
    result->seconds = clock_now() - begin;
}

/* ---- STACK=mine: a lab on the student's own earlier ones */

/* Is the number in a list such as "1 2 5"? */
static bool lists(const char *numbers, int number)
{
    char all[256], one[16];
    snprintf(all, sizeof all, " %.250s ", numbers);
    snprintf(one, sizeof one, " %d ", number);
    return strstr(all, one);
}

static bool passes(int number, const Options *o, const LabResult *before, int count)
{
    static LabResult own;
    Options alone = *o;
    for (int i = 0; i < count; i++)
        if (before[i].lab->number == number)
            return before[i].points == before[i].of;
    alone.author = "student";
    own = (LabResult){.lab = lab_of(number)};
    grade_lab(&own, &alone);
    return own.points == own.of;
}

/* Did this lab reach a TODO in the start file of another lab? */
static bool todo_of_another(const LabResult *result)
{
    int number;
    return sscanf(result->remark, "TODO(%d)", &number) == 1 && number != result->lab->number;
}

/* Does this list, "2, 5", name more than one lab? */
static bool several(const char *labs)
{
    return strchr(labs, ',');
}

/* How an earlier lab that is not started was replaced: by nothing, or by the reference. */
static const char *without_or_on_reference(const LabResult *result, bool plural)
{
    if (todo_of_another(result))
        return plural ? _("without labs %s, which you have not started")
                      : _("without lab %s, which you have not started");
    return plural ? _("on the reference for labs %s, which you have not started")
                  : _("on the reference for lab %s, which you have not started");
}

void tell_what_it_stands_on(LabResult *result, const Options *o, const LabResult *before, int count)
{
    char own[64] = "", reference[64] = "", broken[64] = "";
    if (strcmp(o->author, "mine") || (result->state != GRADED && result->state != NOT_STARTED_YET))
        return;
    for (int i = 0; i < lab_count(); i++) {
        int number = lab_at(i)->number;
        if (!lists(result->lab->needs, number))
            continue;
        bool mine = lists(o->own, number);
        char *list = mine ? own : reference;
        append(list, sizeof own, "%s%d", *list ? ", " : "", number);
        if (mine && result->state != NOT_STARTED_YET && result->points < result->of &&
            !passes(number, o, before, count))
            append(broken, sizeof broken, "%s%d", *broken ? ", " : "", number);
    }
    if (own[0])
        append(result->stack, sizeof result->stack,
               several(own) ? _("on your own labs %s") : _("on your own lab %s"), own);
    if (own[0] && reference[0])
        append(result->stack, sizeof result->stack, "%s", _("; "));
    if (reference[0])
        append(result->stack, sizeof result->stack,
               without_or_on_reference(result, several(reference)), reference);
    if (broken[0])
        append(result->stack, sizeof result->stack,
               several(broken)
                   ? _("\nsome of your earlier labs fail their own checks, so look there first: "
                       "labs %s")
                   : _("\none of your earlier labs fails its own checks, so look there first: "
                       "lab %s"),
               broken);
}
