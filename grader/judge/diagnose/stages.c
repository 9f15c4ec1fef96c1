/* Lab 12: which blocks each stage runs, and what goes from stage to stage. */
#include <stdlib.h>

#include "grader/judge/diagnose/evidence.h"

enum { MOST_BLOCKS = 16 };

/* Ranks of a stage; so far apart are neighbours in a pipeline. */
static int width_of(const Case *c)
{
    return c->world / c->pp;
}

bool is_of_another_stage(const Trial *t, const Entry *want)
{
    const int width = width_of(t->c);
    if (t->c->pp == 1 || want->kind == TRAFFIC || want->kind == WORK)
        return false;
    for (int rank = t->rank % width; rank < t->c->world; rank += width)
        if (entry_of_rank(t, rank, want->kind, want->label))
            return true;
    return false;
}

/* ---- the blocks ---------------------------------------------------------------------------------------------- */

/* Sets the blocks that a rank holds; false where it may not have come to that. */
static bool blocks_of_rank(const Trial *t, int rank, bool holds[MOST_BLOCKS])
{
    bool any = false;
    memset(holds, 0, MOST_BLOCKS * sizeof *holds);
    for (const Entry *entry = NULL; (entry = next_entry(t->outcome->wrote[rank], entry));)
        if (entry->kind == PARAMETER) {
            int block;
            any = true;
            if (sscanf(entry->label.name, "blocks.%d.", &block) == 1 && block >= 0 &&
                block < MOST_BLOCKS)
                holds[block] = true;
        }
    return any || entry_of_rank(t, rank, FINISHED, (Label){0});
}

/* The first stage after `after` that holds the block, or pp. */
static int stage_of(const bool holds[][MOST_BLOCKS], int pp, int block, int after)
{
    int stage = after + 1;
    while (stage < pp && !holds[stage][block])
        stage++;
    return stage;
}

static int count_of(const bool holds[MOST_BLOCKS])
{
    int count = 0;
    for (int i = 0; i < MOST_BLOCKS; i++)
        count += holds[i];
    return count;
}

/* Each block in one stage, in the order of the model. */
static bool tell_wrong_stage(const bool holds[][MOST_BLOCKS], const Case *c, char *why, size_t size)
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

/* All stages wait for the slowest. */
static bool tell_uneven(const bool holds[][MOST_BLOCKS], const Case *c, char *why, size_t size)
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
        _("stage %d runs %d blocks, but stage %d runs %d: no two stages may differ by more than one block, because all of them wait for the slowest"),
        most, count_of(holds[most]), least, count_of(holds[least]));
    return true;
}

void compare_stages(Trial *t)
{
    const Case *c = t->c;
    char why[400];
    bool holds[MAX_RANKS][MOST_BLOCKS];
    if (c->pp == 1)
        return;
    for (int pipeline = 0; pipeline < width_of(c); pipeline++) {
        bool all = true;
        for (int stage = 0; stage < c->pp; stage++)
            all = blocks_of_rank(t, pipeline + stage * width_of(c), holds[stage]) && all;
        if (all && (tell_wrong_stage(holds, c, why, sizeof why) ||
                    tell_uneven(holds, c, why, sizeof why))) {
            fail(t, SHARDING, EXPLAINED, "%s (%s)", why, t->sizes);
            return;
        }
    }
}

double share_of_stage(const Case *c)
{
    return c->pp == 1 ? 1 : (double)((c->blocks + c->pp - 1) / c->pp) / c->blocks;
}

/* ---- what goes from stage to stage --------------------------------------------------------------------------- */

/* Of the stage that stands `step` further: did it write what crosses its border as it should? */
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
    return e->c->pp > 1 && e->trial->result->check[SHARDING].failed &&
           says(e, _("the stages do not run each block once, in order: see sharding"));
}

bool received_is_wrong(const Evidence *e)
{
    const int stage = e->trial->rank / width_of(e->c);
    if (e->want->label.of != A_BLOCK || e->want->label.what != INPUT_OF)
        return false;
    int block = is_that_of_block(e, INPUT_OF);
    if (block >= 0)
        return says(
            e,
            _("stage %d received the input of block %d instead of that of block %d: send what stage_run returned, not what it was given"),
            stage, block, e->want->label.index);
    return says(
        e,
        _("stage %d did not receive what stage %d computed: forward_step sends what stage_run returned, and sends it to the next stage"),
        stage, stage - 1);
}

/* Of a stage that got a wrong gradient all its own are wrong: what came back to the next stage says on which side it is. */
bool gradient_received_is_wrong(const Evidence *e)
{
    const int stage = e->trial->rank / width_of(e->c);
    const bool last = stage == e->c->pp - 1;
    if (e->c->pp == 1 || last || e->trial->result->check[FORWARD].failed ||
        (e->want->check != INPUT_GRADIENT && e->want->check != WEIGHT_GRADIENT))
        return false;
    if (!neighbour_is_right(e, 1, INPUT_GRADIENT_OF))
        return false;
    return says(
        e,
        _("stage %d has the right gradient of its input, but stage %d ran backward with other numbers: backward_step sends what stage_run_backward returned, and the dy of stage_run_backward is what was received"),
        stage + 1, stage);
}
