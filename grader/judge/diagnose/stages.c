/* Labs 12 to 14: checks which blocks each stage runs, and explains wrong numbers between stages. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/diagnose/evidence.h"
#include "grader/labs/stages.h"

/* The ranks per stage, which is also the distance between neighbours in a pipeline. */
static int width_of(const Case *c)
{
    return c->world / c->pp;
}

bool is_of_another_stage(const Trial *t, const Entry *want)
{
    const int width = width_of(t->c);
    if (!lab_of(t->c->lab)->over_stages || t->c->pp == 1 || want->kind == TRAFFIC ||
        want->kind == WORK)
        return false;
    for (int rank = t->rank % width; rank < t->c->world; rank += width)
        if (entry_of_rank(t, rank, want->kind, want->label))
            return true;
    return false;
}

/* ---- the blocks ---------------------------------------------------------------------------------------------- */

/* Sets the blocks that a rank holds; false if it may not have made them yet. */
static bool blocks_of_rank(const Trial *t, int rank, bool holds[MAX_BLOCKS])
{
    bool any = false;
    memset(holds, 0, MAX_BLOCKS * sizeof *holds);
    for (const Entry *entry = NULL; (entry = next_entry(t->outcome->wrote[rank], entry));)
        if (entry->kind == PARAMETER) {
            int block;
            any = true;
            if (sscanf(entry->label.name, "blocks.%d.", &block) == 1 && block >= 0 &&
                block < MAX_BLOCKS)
                holds[block] = true;
        }
    return any || entry_of_rank(t, rank, FINISHED, (Label){0});
}

/* The first stage after `after` that holds the block, or pp. */
static int stage_of(const bool holds[][MAX_BLOCKS], int pp, int block, int after)
{
    int stage = after + 1;
    while (stage < pp && !holds[stage][block])
        stage++;
    return stage;
}

static int count_of(const bool holds[MAX_BLOCKS])
{
    int count = 0;
    for (int i = 0; i < MAX_BLOCKS; i++)
        count += holds[i];
    return count;
}

/* Describes a block that no stage or more than one stage runs, or that is out of order. */
static bool tell_wrong_stage(const bool holds[][MAX_BLOCKS], const Case *c, char *why, size_t size)
{
    for (int block = 0, before = 0; block < c->blocks; block++) {
        int stage = stage_of(holds, c->pp, block, -1), other = stage_of(holds, c->pp, block, stage);
        if (stage == c->pp)
            snprintf(why, size, _("no stage runs block %d"), block);
        else if (other < c->pp)
            snprintf(why, size,
                     _("stage %d and stage %d both run block %d; a block belongs to one stage"),
                     stage, other, block);
        else if (stage < before)
            snprintf(
                why, size,
                _("stage %d runs block %d, which comes after those of stage %d: the first stage "
                  "runs the first blocks"),
                stage, block, before);
        else {
            before = stage;
            continue;
        }
        return true;
    }
    return false;
}

/* Describes two stages that differ by more than one block, because all stages wait for the
 * slowest. */
static bool tell_uneven(const bool holds[][MAX_BLOCKS], const Case *c, char *why, size_t size)
{
    int most = 0, least = 0;
    for (int stage = 1; stage < c->pp; stage++) {
        most = count_of(holds[stage]) > count_of(holds[most]) ? stage : most;
        least = count_of(holds[stage]) < count_of(holds[least]) ? stage : least;
    }
    if (count_of(holds[most]) - count_of(holds[least]) <= 1)
        return false;
    snprintf(
        why, size,
        _("stage %d runs %d blocks, but stage %d runs %d: no two stages may differ by more than "
          "one block, because all of them wait for the slowest"),
        most, count_of(holds[most]), least, count_of(holds[least]));
    return true;
}

/* The ranks that split a layer form a stage, so they must hold the same blocks. */
static bool tell_torn_stage(const bool holds[][MAX_BLOCKS], const bool first[][MAX_BLOCKS],
                            const Case *c, int pipeline, char *why, size_t size)
{
    for (int stage = 0; stage < c->pp; stage++)
        if (memcmp(holds[stage], first[stage], sizeof *holds) != 0) {
            const int rank = stage * width_of(c);
            snprintf(
                why, size,
                _("rank %d and rank %d are both in stage %d, but hold different blocks: the stage "
                  "is mesh->pp_rank, not the rank in the world"),
                rank, rank + pipeline, stage);
            return true;
        }
    return false;
}

/* The blocks of each stage in a pipeline; false if a rank may not have made them yet. */
static bool blocks_of_pipeline(const Trial *t, int pipeline, bool holds[][MAX_BLOCKS])
{
    bool all = true;
    for (int stage = 0; stage < t->c->pp; stage++)
        all = blocks_of_rank(t, pipeline + stage * width_of(t->c), holds[stage]) && all;
    return all;
}

/* The blocks that stage_blocks returned on this rank for the model of the case `c`. */
static bool range_of_rank(const Trial *t, const Case *c, int rank, bool holds[MAX_BLOCKS])
{
    const Entry *entry = entry_of_rank(t, rank, VALUES, stages_ranges_label());
    if (!entry || entry->count != STAGES_RANGES)
        return false;
    const double *range = numbers_of(entry) + 2 * (int64_t)c->blocks;
    for (int block = 0; block < MAX_BLOCKS; block++)
        holds[block] = block >= range[0] && block < range[1];
    return true;
}

/* A formula may be right only for the numbers of blocks that the cases have. */
static void compare_other_models(Trial *t)
{
    char why[400];
    bool holds[MAX_RANKS][MAX_BLOCKS];
    Case c = *t->c;
    for (c.blocks = c.pp; c.blocks <= MAX_BLOCKS; c.blocks++) {
        for (int stage = 0; stage < c.pp; stage++)
            if (!range_of_rank(t, &c, stage * width_of(&c), holds[stage]))
                return;
        if (!tell_wrong_stage(holds, &c, why, sizeof why) &&
            !tell_uneven(holds, &c, why, sizeof why))
            continue;
        fail(t, SHARDING, EXPLAINED, _("stage_blocks of %d blocks on %d stages: %s (%s)"), c.blocks,
             c.pp, why, t->sizes);
        return;
    }
}

/* Blocks in wrong places make all results wrong, so they also fail FORWARD if the case did not run
 * to completion. */
void compare_stages(Trial *t)
{
    const Case *c = t->c;
    char why[400];
    bool first[MAX_RANKS][MAX_BLOCKS] = {{0}}, holds[MAX_RANKS][MAX_BLOCKS] = {{0}};
    if (!t->result->lab->over_stages || !blocks_of_pipeline(t, 0, first))
        return;
    bool wrong = false;
    for (int pipeline = 1; pipeline < width_of(c) && !wrong; pipeline++)
        wrong = blocks_of_pipeline(t, pipeline, holds) &&
                tell_torn_stage(holds, first, c, pipeline, why, sizeof why);
    wrong = wrong || tell_wrong_stage(first, c, why, sizeof why);
    t->result->misplaced |= wrong;
    if (wrong || tell_uneven(first, c, why, sizeof why))
        fail(t, SHARDING, EXPLAINED, "%s (%s)", why, t->sizes);
    else
        compare_other_models(t);
    if (wrong && !ranks_have_finished(t))
        fail(t, FORWARD, EXPLAINED, "%s (%s)", why, t->sizes);
}

/* The first block of this rank's stage, or -1 if the stage has none or is the first one. */
static int first_block_of(const Trial *t)
{
    bool holds[MAX_BLOCKS];
    int block = 0;
    if (t->rank < width_of(t->c) || !blocks_of_rank(t, t->rank, holds))
        return -1;
    while (block < MAX_BLOCKS && !holds[block])
        block++;
    return block < MAX_BLOCKS ? block : -1;
}

bool stage_may_lack(const Trial *t, const Entry *want)
{
    if (is_of_another_stage(t, want))
        return true;
    if (want->label.of != A_BLOCK)
        return false;
    /* the lab chooses the first block of a stage; if an input is missing, so is the loss */
    return ranks_have_finished(t) ? want->label.index != first_block_of(t) : want->check == FORWARD;
}

bool missing_in_stage(Trial *t, const Entry *want)
{
    const int stage = t->rank / width_of(t->c);
    if (!t->result->lab->over_stages || !ranks_have_finished(t))
        return false;
    if (want->label.of == A_BLOCK)
        fail(t, (Check)want->check, EXPLAINED,
             want->check == FORWARD
                 ? _("stage %d received nothing from stage %d (%s)")
                 : _("stage %d did not run backward, so stage %d got no gradient (%s)"),
             stage, stage - 1, t->sizes);
    else
        fail(
            t, (Check)want->check, EXPLAINED,
            _("%s: the stages do not run each block once, in order: see the check 'sharding' (%s)"),
            entry_text(want), t->sizes);
    return true;
}

double share_of_stage(const Case *c)
{
    const int most = (c->blocks + c->pp - 1) / c->pp;
    return c->blocks == 0 ? 1 : (double)most / c->blocks;
}

/* ---- what goes from stage to stage --------------------------------------------------------------------------- */

/* Did the stage `step` stages later write the right input or gradient of its first block? */
static bool neighbour_is_right(const Evidence *e, int step, What what)
{
    Trial other = *e->trial;
    other.rank += step * width_of(e->c);
    const Entry *want = NULL;
    if (other.rank < 0 || other.rank >= e->c->world)
        return false;
    while ((want = next_entry(other.expected.all, want)))
        if (want->label.of == A_BLOCK && (What)want->label.what == what &&
            want->label.step == e->want->label.step &&
            entry_of_rank(&other, other.rank, VALUES, want->label))
            return is_right_on_rank(&other, want);
    return false;
}

/* The block whose input or gradient these numbers are, or -1. */
static int is_that_of_block(const Evidence *e, What what)
{
    for (const Entry *entry = NULL; (entry = next_entry(e->trial->expected.all, entry));)
        if (entry->label.of == A_BLOCK && (What)entry->label.what == what &&
            entry->label.step == e->want->label.step && entry->count == e->count &&
            entry->label.index != e->want->label.index &&
            close_to(e->is, numbers_of(entry), 1, e->count, e->tolerance))
            return entry->label.index;
    return -1;
}

bool blocks_are_misplaced(const Evidence *e)
{
    return e->trial->result->misplaced &&
           says(e, _("the stages do not run each block once, in order: see the check 'sharding'"));
}

bool received_is_wrong(const Evidence *e)
{
    const int stage = e->trial->rank / width_of(e->c);
    if (e->want->label.of != A_BLOCK || e->want->label.what != INPUT_OF)
        return false;
    int block = is_that_of_block(e, INPUT_OF);
    if (block >= 0)
        return says(e,
                    _("stage %d received the input of block %d instead of block %d: send what "
                      "stage_run returned, not what it was given"),
                    stage, block, e->want->label.index);
    return says(
        e,
        _("stage %d does not run on the numbers that stage %d has computed: forward_step must send "
          "to the next stage what stage_run returned, and run what stage_receive returned, "
          "unchanged"),
        stage, stage - 1);
}

/* The factor between the numbers and the right ones, or 0. */
static double factor_of(const Evidence *e)
{
    int64_t at = 0;
    for (int64_t i = 0; i < e->count; i++)
        at = fabs(e->right[i]) > fabs(e->right[at]) ? i : at;
    const double factor = e->count > 1 ? e->is[at] / e->right[at] : 0;
    return close_to(e->is, e->right, factor, e->count, 4 * e->tolerance) ? factor : 0;
}

/* If a stage gets a wrong gradient, all of its own gradients are wrong. The next stage's input
 * gradient shows on which side the mistake is. */
bool gradient_received_is_wrong(const Evidence *e)
{
    const int stage = e->trial->rank / width_of(e->c);
    const bool last = stage == e->c->pp - 1;
    if (e->c->pp == 1 || last || e->trial->result->check[FORWARD].failed ||
        (e->want->check != INPUT_GRADIENT && e->want->check != WEIGHT_GRADIENT))
        return false;
    if (!neighbour_is_right(e, 1, INPUT_GRADIENT_OF))
        return false;
    const double times = e->want->check == INPUT_GRADIENT ? factor_of(e) : 0;
    if (times != 0)
        return says(e,
                    _("stage %d has the right gradient of its input, but stage %d ran backward "
                      "with %.4g times these numbers: a gradient must be sent and received "
                      "unchanged"),
                    stage + 1, stage, times);
    return says(
        e,
        _("stage %d has the right gradient of its input, but stage %d ran backward with different "
          "numbers: backward_step must send what stage_run_backward returned, and the dy of "
          "stage_run_backward must be what was received for that micro-batch"),
        stage + 1, stage);
}
