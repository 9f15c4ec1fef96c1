/* Lab 13, Micro-batches: two schedules, in which several micro-batches are under way in the stages
 * of lab 12. */
#include "grader/labs/stages.h"

#ifndef BALISE_DOUBLE
static void step_of_lab(Scenario *run)
{
    (run->c.kind == BY_GPIPE ? gpipe_step : one_f_one_b_step)(run->stage, run->mesh);
    stage_must_have_sent(run->stage, schedule_name(&run->c));
}

static void pass_of_lab(Scenario *run, int step)
{
    if (step < STEPS) {
        step_of_lab(run);
        return;
    }
    for (int i = 0; i < run->c.micros; i++)
        forward_step(run->stage, i, run->mesh);
    stage_sends_finish(run->stage);
}

void scenario_13(Scenario *run)
{
    run_stages(run, pass_of_lab);
}
#else
void scenario_13(Scenario *run)
{
    run_stages(run, NULL);
}

static Case usual_13(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = stages_usual(lab, d, world, tp);
    c.micros = 2 * c.pp;
    c.B = c.micros;
    return c;
}

/* The same number of blocks in each stage, and other sizes. */
static Case even_case(const Lab *lab, Draw *d, int world, int tp, int micros)
{
    Case c = usual_13(lab, d, world, tp);
    c.micros = micros;
    c.B = micros * draw(d, 1, micros < 4 ? 3 : 2);
    c.S = 5 + 2 * draw(d, 0, 1);
    c.A = 2 * tp;
    c.H = c.A * draw(d, 3, 5);
    c.blocks = c.pp * (c.pp < 3 ? draw(d, 1, 2) : 1);
    return c;
}

/* More micro-batches than stages, but not a multiple of the number of stages. */
static int many_micros(Draw *d, int pp)
{
    enum { MOST = 8 };
    int micros = draw(d, pp + 1, MOST);
    while (pp > 1 && micros % pp == 0)
        micros = micros == MOST ? pp + 1 : micros + 1;
    return micros;
}

/* Fewer micro-batches than a stage runs forward before its first backward pass. */
static int few_micros(int pp)
{
    return pp > 2 ? pp - 2 : 1;
}

static int cases_13(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    const int pp = world / tp;
    if (pp > 4) { /* more stages than in any other case */
        cases[0] = even_case(lab, d, world, tp, many_micros(d, pp));
        cases[0].kind = BY_ONE_F_ONE_B;
        int count = 1;
        for (int stages = 2; stages <= pp; stages++) /* as many micro-batches as stages */
            for (int kind = BY_GPIPE; kind <= BY_ONE_F_ONE_B && pp % stages == 0; kind++) {
                cases[count] = even_case(lab, d, world, tp, stages);
                cases[count].pp = stages;
                cases[count++].kind = kind;
            }
        return count;
    }
    cases[0] = usual_13(lab, d, world, tp);
    cases[1] = even_case(lab, d, world, tp, many_micros(d, pp));
    cases[1].kind = BY_ONE_F_ONE_B;
    if (pp == 3) /* many messages: the middle stage sends two for each micro-batch */
        cases[1].B = cases[1].micros = MAX_MICROS;
    cases[2] = even_case(lab, d, world, tp, many_micros(d, pp));
    cases[2].training = 0;
    cases[2].delay = 1;
    if (world == 4 && tp == 1) /* two replicas: a rank's number in the world is not its stage */
        cases[1].pp = cases[2].pp = 2;
    if (pp == 2)
        cases[2].B = cases[2].micros = MAX_MICROS;
    cases[3] = even_case(lab, d, world, tp, few_micros(pp));
    cases[4] = even_case(lab, d, world, tp, pp == 1 ? 2 : few_micros(pp));
    cases[4].kind = BY_ONE_F_ONE_B;
    cases[4].delay = 1;
    cases[5] = usual_13(lab, d, world, tp);
    cases[5].kind = BY_ONE_F_ONE_B;
    return 6;
}

static double alive_in_step(int rank, const Entry *entry, const double *numbers)
{
    return entry->kind == PASS && entry->label.of == THE_MODEL && entry->label.step == 0
               ? numbers[MORE_ALIVE]
               : 0;
}

Lab lab_13 = {
    LAB_FILES_13,
    .title = N_("Micro-batches"),
    .points = {[FORWARD] = 2,
               [INPUT_GRADIENT] = 1,
               [WEIGHT_GRADIENT] = 2,
               [STEP] = 1,
               [ARITHMETIC] = 2,
               [COMMUNICATION] = 1,
               [SCHEDULE] = 3},
    .layouts = "2x1 3x1 4x1 4x2 1x1 6x1",
    .has_replicas = true,
    .over_stages = true,
    .sizes = SIZES_BSH | SIZE_A | SIZE_P | SIZE_BLOCKS | SIZE_MICROS,
    .cuts = STAGES_CUTS,
    .at_once = {"stage_send", "stage_send_start", "stage_sends_finish", true},
    .predict = {.question = N_("Four stages run eight micro-batches with 1F1B. For each stage, "
                               "take the largest number of micro-batches that wait for their "
                               "backward pass at once. What do these four numbers add up to?"),
                .at = {.world = 4, .tp = 1, .pp = 4, .B = 8, .micros = 8, .kind = BY_ONE_F_ONE_B},
                .count = alive_in_step},
    .examine = {.the_case = compare_micro_batches,
                .may_lack = stage_may_lack,
                .lacks = stage_lacks,
                .reasons = stages_reasons,
                .ending = micro_batches_ending},
    .kinds = {[BY_GPIPE] = {.scenario = scenario_13}, [BY_ONE_F_ONE_B] = {.scenario = scenario_13}},
    .forward = stages_sent_forward,
    .backward = stages_sent_in_step,
    .usual = usual_13,
    .cases = cases_13,
    .misfit = stages_misfit,
};
#endif
