/* Lab 12, Stages: which blocks a stage runs, and a batch that goes through all stages, forward and
 * backward. */
#include "grader/labs/stages.h"

#ifndef BALISE_DOUBLE
#include "base/run.h"

static void write_ranges(Scenario *run, const Mesh *mesh)
{
    double *numbers;
    stream_entry(&run->stream, VALUES, SHARDING,
                 stages_ranges_label(mesh->pp_degree, mesh->pp_rank), STAGES_RANGES, &numbers)
        ->shape = SHAPE(STAGES_RANGES);
    memset(numbers, 0, STAGES_RANGES * sizeof *numbers);
    for (int blocks = mesh->pp_degree; blocks <= MAX_BLOCKS; blocks++) {
        const Range own =
            mesh == run->mesh ? own_stage_blocks(blocks, mesh) : stage_blocks(blocks, mesh);
        numbers[2 * blocks] = (double)own.begin;
        numbers[2 * blocks + 1] = (double)own.end;
    }
}

/* How stage_blocks divides models of up to MAX_BLOCKS blocks; most of these sizes appear in no
 * case. One rank alone also tries longer pipelines than there are ranks. */
static void write_all_ranges(Scenario *run)
{
    at(run, label_named("stage_blocks")); /* what it makes and never frees is a leak */
    write_ranges(run, run->mesh);
    Mesh mesh = *run->mesh;
    for (mesh.pp_degree = 2; mesh.pp_degree <= MAX_RANKS && run->c.world == 1; mesh.pp_degree++)
        for (mesh.pp_rank = 0; mesh.pp_rank < mesh.pp_degree; mesh.pp_rank++)
            write_ranges(run, &mesh);
}

static int asked_for; /* the micro-batch that the lab was called with */

static void must_take_what_was_asked(void *context, const Stage *stage, int micro, bool backward)
{
    const char *function = backward ? "backward_step" : "forward_step";
    if (micro != asked_for)
        misuse("pass `micro` on unchanged, to every function that takes it",
               "%s was called with micro = %d, but takes micro-batch %d", function, asked_for,
               micro);
}

static void pass_of_lab(Scenario *run, int step)
{
    const int last = micros_of(&run->c) - 1;
    run->stage->watch.takes = must_take_what_was_asked;
    if (last == 0 && step < STEPS) {
        asked_for = 0;
        pipeline_step(run->stage, run->mesh);
        return;
    }
    for (asked_for = last; asked_for >= 0; asked_for--)
        forward_step(run->stage, asked_for, run->mesh);
    for (asked_for = 0; asked_for <= last && step < STEPS; asked_for++)
        backward_step(run->stage, asked_for, run->mesh);
}

void scenario_12(Scenario *run)
{
    write_all_ranges(run);
    run_stages(run, pass_of_lab);
}
#else
void scenario_12(Scenario *run)
{
    run_stages(run, NULL);
}

static int cases_12(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    cases[0] = stages_usual(lab, d, world, tp);
    Case c = stages_usual(lab, d, world, tp);
    c.micros = 2; /* as in lab 13, but the last micro-batch goes forward first */
    c.B = 4;
    c.S = 5 + 2 * draw(d, 0, 1);
    c.A = 2 * tp;
    if (world > 2 && tp == 1)
        c.B = c.micros = 3; /* with three stages, one in the middle */
    if (world == 4 && tp == 1)
        c.pp = 2; /* two replicas: a rank's number in the world is not its stage */
    c.H = c.A * draw(d, 3, 5);
    c.blocks = c.pp * (c.pp < 3 ? draw(d, 1, 2) : 1);
    c.training = 0;
    c.delay = 1;
    cases[1] = cases[2] = c;
    cases[2].micros = 1; /* two replicas run pipeline_step */
    return c.pp < world / tp ? 3 : 2;
}

static double bytes_of_step(int rank, const Entry *entry, const double *numbers)
{
    const Label step = work_of_stages(0);
    return entry->kind == TRAFFIC && label_equal(&entry->label, &step) ? 4 * numbers[0] : 0;
}

Lab lab_12 = {
    LAB_FILES_12,
    .title = N_("Stages of a pipeline"),
    .points = {[FORWARD] = 2,
               [INPUT_GRADIENT] = 1,
               [WEIGHT_GRADIENT] = 2,
               [STEP] = 1,
               [SHARDING] = 2,
               [ARITHMETIC] = 1,
               [COMMUNICATION] = 1},
    .layouts = "1x1 2x1 3x1 4x1 4x2",
    .has_replicas = true,
    .over_stages = true,
    .sizes = SIZES_BSH | SIZE_A | SIZE_P | SIZE_BLOCKS,
    .starts_working = true,
    .cuts = STAGES_CUTS,
    .predict = {.question =
                    N_("Three stages run a model of five blocks with H = 24 on two texts of 16 "
                       "tokens. How many bytes do the ranks send in all, forward and backward?"),
                .unit = N_("bytes"),
                .at = {.world = 3, .tp = 1, .pp = 3, .B = 2, .S = 16, .H = 24, .blocks = 5},
                .count = bytes_of_step},
    .examine = {.the_case = compare_stages,
                .may_lack = stage_may_lack,
                .lacks = stage_lacks,
                .reasons = stages_reasons,
                .ending = stages_ending},
    .kinds = {{.scenario = scenario_12}},
    .forward = stages_sent_forward,
    .backward = stages_sent_in_step,
    .usual = stages_usual,
    .cases = cases_12,
    .misfit = stages_misfit,
};
#endif
