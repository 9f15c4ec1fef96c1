/** @file
 * Labs 12 to 14: a batch goes through the stages of a pipeline, in one piece or in micro-batches.
 * The judge runs it in one piece.
 */
#pragma once

#include "grader/labs/lab.h"
#include "model/stage.h"

/** The numbers of a PASS entry, for a pass that has ended. Its label names the micro-batch (index)
 *  and the step; its What is the direction. */
enum {
    CALLS_BEFORE, /**< how many MPI calls its rank had made by then */
    MULTIPLIED,   /**< its multiply-adds in this step by then */
    MORE_ALIVE,   /**< 1 if more micro-batches await backward than ever before in this step, or 0 */
    PASS_NUMBERS  /**< how many numbers these are */
};

/** What one of the labs does with a batch: a step, or an evaluation (step STEPS). */
typedef void StagesFunction(Scenario *run, int step);

/** On a rank: an evaluation and two steps, in which `pass` calls the lab. In the judge: the same,
 *  with the batch in one piece. */
void run_stages(Scenario *run, StagesFunction *pass);

/** The label of what the ranks send and multiply in a step or in the evaluation. */
Label work_of_stages(int step);

/** The sizes of a step or an evaluation, for its budget. */
Sizes stages_sizes(const Scenario *run);

/** The model of a case. */
TransformerConfig stages_config(const Case *c);
/** Fills the micro-batches of a stage. Each replica has an equal part of the rows of a step or of the
 *  evaluation, and each micro-batch an equal part of the rows of its replica, in order. */
void stages_fill(Scenario *run, Stage *stage, int step, int replica, int replicas);

/** Call this on a rank before the passes of a step or of the evaluation. */
void stages_passes_begin(void);
/** On a rank: writes that a pass has ended, as a PASS entry. */
void stages_pass_ran(Scenario *run, int micro, int step, bool backward);

/** Lab 12: the label of what stage_blocks() returned to a stage for models of up to MAX_BLOCKS
 *  blocks. */
static inline Label stages_ranges_label(int stages, int stage)
{
    Label label = label_of(VALUE_OF, A_BLOCK, stage, NO_STEP);
    label.detail = stages;
    return label;
}
/** The length of that entry: begin and end for each number of blocks, from 0. */
enum { STAGES_RANGES = 2 * (MAX_BLOCKS + 1) };

/** The kinds of cases of lab 13. */
enum {
    BY_GPIPE,       /**< gpipe_step() takes the steps */
    BY_ONE_F_ONE_B, /**< one_f_one_b_step() does */
};
/** The function of lab 13 that takes the steps of this case. */
static inline const char *schedule_name(const Case *c)
{
    return c->kind == BY_GPIPE ? "gpipe_step" : "one_f_one_b_step";
}

/** How many micro-batches a batch of this case is split into. */
static inline int micros_of(const Case *c)
{
    return c->micros ? c->micros : 1;
}

/** The budgets: see Lab. */
AllowanceFunction stages_sent_forward, stages_sent_in_step;
/** The usual case of labs 12 and 13: five blocks, which two to four stages cannot share equally. */
UsualFunction stages_usual;
/** Why these sizes do not fit; NULL if they do. */
const char *stages_misfit(const Case *c);

/** In the judge: is each block in one stage, and do the stages differ by at most one block? */
void compare_stages(struct Trial *t);
/** In the judge: compares the slots that each step of lab 13 takes with those that suffice, and the
 *  micro-batches whose activations a stage holds with the number that suffices. */
void compare_micro_batches(struct Trial *t);
/** In the judge: may this rank's stage lack this entry? */
bool stage_may_lack(const struct Trial *t, const Entry *want);
/** In the judge: fails the check of an entry that a stage lacks in a case that was completed.
 *  @return whether it has failed a check */
bool stage_lacks(struct Trial *t, const Entry *want);
/** In the judge: why numbers of stages are wrong. */
extern Finder *const stages_reasons[];
/** In the judge: appends a sentence if a stage has ended a pass in which another stage still waits
 *  for it. */
void stages_ending(const struct Trial *t, char *text, size_t size);
/** In the judge: stages_ending(), and appends why stages, or ranks of one stage, wait for each
 *  other. */
void micro_batches_ending(const struct Trial *t, char *text, size_t size);

/** How the parameters of a BERT may be split. */
#define STAGES_CUTS                                                                                \
    {                                                                                              \
        {"embedding.weight", CUT_0 | CUT_1}, {"attention.query", CUT_0}, {"attention.key", CUT_0}, \
            {"attention.value", CUT_0}, {"attention.output", CUT_1}, {"up.weight", CUT_0},         \
        {                                                                                          \
            "down.weight", CUT_1                                                                   \
        }                                                                                          \
    }
