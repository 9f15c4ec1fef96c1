/* build/grade --throughput: how fast labs train, in the same sandbox as when they are graded. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "grader/judge/commands.h"
#include "grader/judge/report/output.h"
#include "grader/judge/report/verdict.h"
#include "grader/labs/replicas.h"

enum {
    RANKS = 4,
    TP = 2,
    FEW_STEPS = 2, /* the time of these, of the start and of the end is subtracted */
    STEPS_TIMED = 16,
    REPEATS = 3, /* the fastest counts, because other work on the machine only adds time */
};

static Case training(const Options *o, int steps)
{
    static const Case sizes = {.B = 16, .S = 64, .H = 128, .A = 8, .V = 1024};
    Case c = lab_case_with(lab_of(TRAINING_LAB), o->seed, 0, RANKS, TP, &sizes);
    c.kind = WHOLE_MODEL;
    c.steps = steps;
    c.delay = 0;
    return c;
}

static double loss_of_step(const Outcome *outcome, int step)
{
    const Entry *entry =
        find_entry(outcome->wrote[0], VALUES, label_of(LOSS_OF, THE_MODEL, 0, step));
    return entry && entry->count == 1 ? numbers_of(entry)[0] : NAN;
}

static void write_result(const Options *o, double tokens_per_second, double loss)
{
    char isolation[ISOLATION_SIZE];
    Problem problem;
    tell_isolation(&(Verdict){.sandbox = o->sandbox}, isolation);
    char *text = json_dumps(json_pack("{s:b, s:s, s:[{s:f, s:o}]}", "complete", true, "isolation",
                                      isolation, "labs", "tokens_per_second", tokens_per_second,
                                      "loss", isfinite(loss) ? json_real(loss) : json_null()),
                            JSON_INDENT(1));
    for (int i = 0; i < o->outs.count; i++)
        if (!write_file(o->outs.name[i], NULL, text, &problem))
            give_up(&problem);
    free(text);
}

/* The shortest time of the cases that have this many steps. */
static double seconds_of(const Runs *runs, const Case *cases, int steps)
{
    double least = INFINITY;
    for (int i = 0; i < runs->count; i++)
        if (cases[i].steps == steps)
            least = fmin(least, runs->outcome[i].seconds);
    return least;
}

static void must_be_complete(const Runs *runs)
{
    for (int i = 0; i < runs->count; i++)
        if (runs->outcome[i].ending != COMPLETE)
            give_up_with(N_("make grade LAB=11 STACK=mine runs a smaller training with these labs"),
                         _("the training did not run to completion: %s"),
                         runs->outcome[i].diagnosis);
}

int time_training(const Options *o)
{
    static LabResult result;
    char runner[512];
    Case cases[2 * REPEATS];
    result.lab = lab_of(TRAINING_LAB);
    snprintf(runner, sizeof runner, "%s/%02d-%s", o->runners, TRAINING_LAB, o->author);
    lines_of(runner);
    printed_forget(runner);
    if (has_no_runner(&result, runner))
        give_up_with(N_("make grade LAB=11 STACK=mine says why"), "%s", result.remark);
    for (int i = 0; i < 2 * REPEATS; i++)
        cases[i] = training(o, i % 2 ? FEW_STEPS + STEPS_TIMED : FEW_STEPS);
    Runs *runs =
        run_or_give_up(o, runner, cases, 2 * REPEATS, RANKS, clock_now() + lab_seconds(o->sandbox));
    must_be_complete(runs);
    const double seconds = seconds_of(runs, cases, FEW_STEPS + STEPS_TIMED) -
                           seconds_of(runs, cases, FEW_STEPS),
                 tokens = (double)cases[0].B * cases[0].S * STEPS_TIMED,
                 loss = loss_of_step(&runs->outcome[1], FEW_STEPS + STEPS_TIMED - 1);
    const double tokens_per_second = tokens / fmax(seconds, 1e-3);
    printf(_("%.0f tokens/s, loss %.6f\n"), tokens_per_second, loss);
    write_result(o, tokens_per_second, loss);
    runs_free(runs);
    return 0;
}
