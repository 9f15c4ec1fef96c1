/* Labs 12 to 14: checks which blocks each stage runs. */
#include "grader/labs/shared/stage_blocks.h"

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

/* The blocks that stage_blocks returned on this rank to a stage of a pipeline with c->pp stages. */
static bool range_of_stage(const Trial *t, const Case *c, int rank, int stage,
                           bool holds[MAX_BLOCKS])
{
    const Entry *entry = entry_of_rank(t, rank, VALUES, stages_ranges_label(c->pp, stage));
    if (!entry || entry->count != STAGES_RANGES)
        return false;
    const double *range = numbers_of(entry) + 2 * (int64_t)c->blocks;
    for (int block = 0; block < MAX_BLOCKS; block++)
        holds[block] = block >= range[0] && block < range[1];
    return true;
}

/* Does stage_blocks cut some model wrongly into c->pp stages? */
static bool tell_wrong_model(const Trial *t, Case *c, char *why, size_t size)
{
    bool holds[MAX_RANKS][MAX_BLOCKS];
    for (c->blocks = c->pp; c->blocks <= MAX_BLOCKS; c->blocks++) {
        for (int stage = 0; stage < c->pp; stage++)
            if (!range_of_stage(t, c, t->c->world == 1 ? 0 : stage * width_of(c), stage,
                                holds[stage]))
                return false;
        if (tell_wrong_stage(holds, c, why, size) || tell_uneven(holds, c, why, size))
            return true;
    }
    return false;
}

/* A formula may be right only for the numbers of blocks or stages that the cases have. On one rank, it
 * was also asked for longer pipelines. If two stages are wrong there, it reads the group, which has
 * one rank; other cases have two. */
static void compare_other_models(Trial *t)
{
    char why[400];
    Case c = *t->c;
    for (; c.pp <= (t->c->world == 1 ? MAX_RANKS : t->c->pp); c.pp++) {
        if (!tell_wrong_model(t, &c, why, sizeof why))
            continue;
        if (t->c->world > 1 || c.pp != 2)
            fail(t, SHARDING, EXPLAINED, _("stage_blocks of %d blocks on %d stages: %s (%s)"),
                 c.blocks, c.pp, why, t->sizes);
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
    if (!blocks_of_pipeline(t, 0, first))
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

int first_block_of(const Trial *t)
{
    bool holds[MAX_BLOCKS];
    int block = 0;
    if (t->rank < width_of(t->c) || !blocks_of_rank(t, t->rank, holds))
        return -1;
    while (block < MAX_BLOCKS && !holds[block])
        block++;
    return block < MAX_BLOCKS ? block : -1;
}
